import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(1)))
struct LibraryBuilderTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("builder") }

    private func build(_ folder: String) async throws -> LibraryBuilder {
        try await LibraryBuilder(
            folder: folder,
            server: TestStore.address(library: folder),
            now: 1,
            newHistoryID: String(repeating: "a", count: 32)
        )
    }

    @Test func `appended records become the history and the entities of the library`() async throws {
        let folder = folder.file("library")
        let builder = try await build(folder)
        var library = RandomLibrary(seed: 3)
        var record = ChangeRecord(
            sequence: 1,
            library: builder.historyID,
            date: 5,
            origin: ChangeOrigin(identity: "test")
        )
        record.assets = (0..<5).map { EntityChange(before: nil, after: library.asset($0)) }
        try await builder.append(record, bytes: record.bytes)
        try await builder.close()

        let fixture = try StoreFixture(at: folder)
        #expect(fixture.store.historyID == builder.historyID && fixture.store.startSequence == 1)
        #expect(try await fixture.store.read { try $0.history.record(1) } == record.bytes)
        #expect(try await fixture.store.everything().assets.count == 5)
    }

    @Test func `a folder that has a library, or that another builder uses, is refused`() async throws {
        let folder = folder.file("library")
        do {
            let builder = try await build(folder)
            await #expect(throws: StorageError.self) { _ = try await build(folder) }
            let record = ChangeRecord(
                sequence: 1,
                library: builder.historyID,
                date: 5,
                origin: ChangeOrigin(identity: "test")
            )
            try await builder.append(record, bytes: record.bytes)
            try await builder.close()
        }
        await #expect(throws: StorageError.self) { _ = try await build(folder) }
    }
}
