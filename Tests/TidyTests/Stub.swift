// Tests/TidyTests
