// Tests/ImagingTests
