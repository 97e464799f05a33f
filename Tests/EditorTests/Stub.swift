// EditorTests
