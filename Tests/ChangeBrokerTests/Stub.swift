// Tests/ChangeBrokerTests
