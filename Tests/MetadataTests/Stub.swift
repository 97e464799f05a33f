// Tests/MetadataTests
