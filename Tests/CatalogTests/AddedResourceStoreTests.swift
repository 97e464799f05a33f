import Contracts
import JSONValue
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of the record of the resources that an add-only client has added (T-40).
@Suite(.timeLimit(.minutes(1)))
struct AddedResourceStoreTests {
    private static let context = GroupCommit.WriteContext(
        now: { 1_700_000_000_000_000 },
        makeID: IdentifierGenerator(now: { 1_700_000_000_000_000 }).make
    )
    private static let client = AddOnlyClient(identity: "key:a", key: "K")

    /// Performs a transaction; returns the new assets.
    private func perform(
        _ prepared: [PreparedChange],
        by client: AddOnlyClient?,
        _ fixture: StoreFixture
    ) async throws -> [Asset] {
        var write = WriteRequest(prepared: prepared, origin: ChangeOrigin(identity: client?.identity ?? "uid:1"))
        write.addOnly = client
        write.uploadsAgain = client != nil
        let record = try await fixture.store.onWriter { [write] database in
            let done = try GroupCommit(database: database, context: Self.context).commit([write]) { _ in
                false
            }
            return try #require(try done.results.first?.get().record)
        }
        return try ChangeRecord(json: JSON(parsing: record.bytes)).assets.compactMap {
            $0.before == nil ? $0.after : nil
        }
    }

    private func digests(
        _ asset: ObjectID,
        _ client: AddOnlyClient,
        _ fixture: StoreFixture
    ) async throws -> Set<String> {
        try await fixture.store.read { try $0.addedResources.digests(of: asset, addedBy: client) }
    }

    @Test(.spec("T-40"))
    func `an asset belongs to the add-only client that has added it, with its resources at that time`() async throws {
        let fixture = try StoreFixture()
        let both = try await perform([.create("p", 1), .create("q", 2)], by: Self.client, fixture)
        let mine = try #require(both.first)
        #expect(both.count == 2)
        for asset in both {
            let own = try await digests(asset.id, Self.client, fixture)
            #expect(!own.isEmpty && own == Set(asset.resources.map(\.digest)))
        }
        let others = [
            AddOnlyClient(identity: "key:b", key: "K"), AddOnlyClient(identity: "key:a", key: "another key"),
            AddOnlyClient(identity: "key:a", key: nil),
        ]
        for other in others { #expect(try await digests(mine.id, other, fixture).isEmpty) }
        // The additions and later changes of other clients are not its own.
        let theirs = try #require(try await perform([.create("p", 3)], by: nil, fixture).first)
        #expect(try await digests(theirs.id, Self.client, fixture).isEmpty)
        _ = try await perform([.edit(mine.id, "org.example", 4)], by: nil, fixture)
        let edited = try #require(try await fixture.store.read { try $0.assets.asset(mine.id) })
        #expect(edited.resources.count > mine.resources.count)
        #expect(try await digests(mine.id, Self.client, fixture) == Set(mine.resources.map(\.digest)))
        // A deleted asset belongs to no client.
        _ = try await perform([PreparedChange(.deleteAssets(.init(ids: [mine.id])))], by: nil, fixture)
        #expect(try await digests(mine.id, Self.client, fixture).isEmpty)
        let rows = try await fixture.store.read { reader in
            try reader.database.first("SELECT count(*) FROM added_resource") { $0.int(0) }
        }
        #expect(rows == both.dropFirst().flatMap(\.resources).count)
    }

    @Test(.spec("T-40"))
    func `bytes that the object store has are sent again if the client may not read the library`() async throws {
        let fixture = try StoreFixture()
        try await fixture.store.changeUploadStates { try $0.begin("s3://a") }
        let first = try #require(try await perform([.create("p", 1)], by: nil, fixture).first)
        let digest = try #require(first.resources.first.flatMap { ResourceDigest($0.digest) })
        func isRepeated() async throws -> Bool {
            try await fixture.store.read { try $0.uploadStates.repeated([digest]) } == [digest]
        }
        try await fixture.store.changeUploadStates { try $0.confirm(digest, size: 1, date: 1) }
        _ = try await perform([.create("p", 1, ifDuplicate: .create)], by: nil, fixture)
        #expect(try await !isRepeated())
        _ = try await perform([.create("p", 1, ifDuplicate: .create)], by: Self.client, fixture)
        #expect(try await isRepeated())
        #expect(try await fixture.store.read { try $0.uploadStates.remoteSize(of: digest) } == nil)
    }
}
