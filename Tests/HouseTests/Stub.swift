// Tests/HouseTests
