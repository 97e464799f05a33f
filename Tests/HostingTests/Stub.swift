// Tests/HostingTests
