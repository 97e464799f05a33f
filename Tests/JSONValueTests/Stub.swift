// Tests/JSONValueTests
