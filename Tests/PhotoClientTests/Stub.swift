// Tests/PhotoClientTests
