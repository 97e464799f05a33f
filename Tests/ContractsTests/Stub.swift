// Tests/ContractsTests
