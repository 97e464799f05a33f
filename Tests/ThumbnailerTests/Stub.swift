// Tests/ThumbnailerTests
