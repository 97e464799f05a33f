// Tests/CatalogTests
