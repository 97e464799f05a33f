// Tests/EditorTests
