// Tests/MessagingTests
