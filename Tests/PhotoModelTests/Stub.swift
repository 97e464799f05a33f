// Tests/PhotoModelTests
