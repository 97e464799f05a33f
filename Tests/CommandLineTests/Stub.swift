// Tests/CommandLineTests
