// Tests/TestSupport
