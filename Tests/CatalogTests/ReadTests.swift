import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of reads: they end when the waiting task is cancelled, one client leaves a connection to the others, and
/// earlier states take no more time than decoding their records.
@Suite(.timeLimit(.minutes(1)))
struct ReadTests {
    @Test func `a read whose task is cancelled ends, between statements and in a long one`() async throws {
        let fixture = try StoreFixture()
        let begun = AwaitableValue(false)
        let statements = Task {
            try await fixture.store.read { reader in
                begun.withLock { $0 = true }
                // The read ends only if it is cancelled.
                while true { _ = try reader.head() }
            }
        }
        await begun.wait { $0 }
        statements.cancel()
        await #expect(throws: CancellationError.self) { try await statements.value }

        let hasLongBegun = AwaitableValue(false)
        let long = Task {
            try await fixture.store.read { reader in
                hasLongBegun.withLock { $0 = true }
                while true { try reader.checkCancellation() }
            }
        }
        await hasLongBegun.wait { $0 }
        long.cancel()
        await #expect(throws: CancellationError.self) { try await long.value }
        // The connections still work.
        for _ in 0..<8 { #expect(try await fixture.store.read { try $0.head().sequence } == 0) }
    }

    @Test func `a client with many long reads leaves a connection to another client`() async throws {
        let fixture = try StoreFixture()
        let running = AwaitableValue(0)
        let reads = (0..<8).map { _ in
            Task {
                try await WorkSource.$current.withValue(.connection(ConnectionID(test: 1))) {
                    try await fixture.store.read { reader in
                        running.withLock { $0 += 1 }
                        while true { try reader.checkCancellation() }
                    }
                }
            }
        }
        await running.wait { $0 == 3 }
        let other = try await WorkSource.$current.withValue(.connection(ConnectionID(test: 2))) {
            try await fixture.store.read { try $0.head().sequence }
        }
        #expect(other == 0 && running.current == 3)
        for read in reads { read.cancel() }
        for read in reads { await #expect(throws: CancellationError.self) { try await read.value } }
    }

    @Test func `a client with many connections leaves a connection to another client`() async throws {
        let fixture = try StoreFixture()
        let running = AwaitableValue(0)
        let allowed = CachedPermission(Permission(.limited).byte)
        func source(_ identity: String, connection: UInt64, permission: CachedPermission? = nil) -> WorkSource {
            WorkSource(
                of: RequestContext(
                    connection: ConnectionID(test: connection),
                    identity: identity,
                    cachedPermission: permission ?? allowed
                )
            )
        }
        let reads = (0..<8).map { number in
            let client = source("key:many", connection: UInt64(number))
            return Task {
                try await WorkSource.$current.withValue(client) {
                    try await fixture.store.read { reader in
                        running.withLock { $0 += 1 }
                        while true { try reader.checkCancellation() }
                    }
                }
            }
        }
        await running.wait { $0 == 3 }
        let other = try await WorkSource.$current.withValue(source("key:other", connection: 8)) {
            try await fixture.store.read { try $0.head().sequence }
        }
        #expect(other == 0 && running.current == 3)
        for read in reads { read.cancel() }
        for read in reads { await #expect(throws: CancellationError.self) { try await read.value } }
        // Programs of the user who runs the services have one identity, but each is a client of its own.
        let host = CachedPermission(Permission(.host).byte)
        let programs = (1...2).map { source("uid:1", connection: $0, permission: host) }
        #expect(programs[0] != programs[1])
    }

    @Test func `a service works for the client that it names, and others cannot name one`() {
        func source(_ role: Permission.Role) -> WorkSource {
            let context = RequestContext(
                connection: ConnectionID(test: 1),
                identity: "key:a",
                cachedPermission: CachedPermission(Permission(role).byte)
            )
            return WorkSource(of: context, onBehalfOf: "key:b")
        }
        for role in Permission.Role.allCases {
            #expect(source(role) == .identity(role == .service || role == .host ? "key:b" : "key:a"))
        }
    }

    @Test func `a read of an earlier state ends between two assets when its task is cancelled`() async throws {
        let fixture = try StoreFixture()
        let before = (1...200).map { number -> Asset in
            var random = SeededRandom(seed: UInt64(number))
            var asset = Asset(
                id: ObjectID(.asset, milliseconds: Int64(number), using: &random),
                revision: Revision(1),
                contentRevision: Revision(1)
            )
            asset.keywords = (0..<4).map { _ in String(repeating: "a", count: 1024) }
            return asset
        }
        var created = TransactionResult()
        created.assets = before.map { EntityChange(before: nil, after: $0) }
        try await fixture.write(created, sequence: 1)
        let touched = Dictionary(uniqueKeysWithValues: before.map { ($0.id, Optional($0)) })
        // Each piece is compared at every position of each keyword.
        let patterns = (0..<4).map { "ANY keywords LIKE '*?\(String(repeating: "a", count: 250))b\($0)*'" }
        let predicate = try Predicate(format: patterns.joined(separator: " OR "), of: .asset)
        let fetch = try Fetch(.assets(.library), predicate: predicate)
        let evaluation = ContinuousClock().measure { #expect(!predicate.evaluate(before[0])) }
        let begun = AwaitableValue(false)
        let read = Task {
            try await fixture.store.read { reader in
                begun.withLock { $0 = true }
                return try ResultMerge(reader: reader, fetch: fetch).merged([], with: touched)
            }
        }
        await begun.wait { $0 }
        let start = ContinuousClock.now
        read.cancel()
        await #expect(throws: CancellationError.self) { try await read.value }
        #expect(ContinuousClock.now - start < evaluation * 100, "an asset takes \(evaluation)")
    }

    @Test
    func `a stored text that normal form C has made longer than its limit is read and deleted`() async throws {
        let fixture = try StoreFixture()
        var random = SeededRandom(seed: 1)
        let long = { (limit: Int) in String(repeating: nfc("\u{1D160}"), count: limit / 4) }
        var asset = Asset(
            id: ObjectID(.asset, milliseconds: 1, using: &random),
            revision: Revision(1),
            contentRevision: Revision(1)
        )
        (asset.caption, asset.keywords) = (long(65_536), [long(1024)])
        (asset.burstIdentifier, asset.originalFilename) = (long(128), long(1024))
        (asset.adjustmentFormatIdentifier, asset.adjustmentFormatVersion) = (long(256), long(64))
        var album = AssetCollection(
            id: ObjectID(.assetCollection, milliseconds: 1, using: &random),
            revision: Revision(1)
        )
        album.title = long(1024)
        album.parent = .root
        album.parentKey = try #require(OrderKey.keys(count: 1, after: nil).first)
        var created = TransactionResult()
        created.assets = [EntityChange(before: nil, after: asset)]
        created.collections = [EntityChange(before: nil, after: album)]
        try await fixture.write(created, sequence: 1)
        let (assets, titles) = try await fixture.store.read { reader in
            var (assets, titles): ([Asset?], [String?]) = ([], [])
            try reader.history.each(after: 0, through: reader.head(), bytes: .max) { record in
                assets += record.assets.map(\.after)
                titles += record.collections.map { $0.after?.title }
            }
            return (assets, titles)
        }
        #expect(assets == [asset] && titles == [album.title])
        // The bytes of the text are three times the limit, and its characters are within it.
        #expect(album.title?.utf8.count == 3 * 1024 && album.title?.unicodeScalars.count == 768)
        let isTrimmed = try await fixture.store.onWriter { database in
            var isTrimmed = false
            try database.inImmediateTransaction {
                let history = HistoryStore(database: database)
                isTrimmed = try history.trim(before: .max, bytes: .max, records: 10, recordBytes: .max)
            }
            return isTrimmed
        }
        #expect(isTrimmed)
        #expect(try await fixture.store.read { try $0.head().oldest } == 1)
    }

    @Test func `a result is carried forward correctly over few changes and over many`() async throws {
        let fixture = try StoreFixture()
        let before = (1...60).map { number -> Asset in
            var random = SeededRandom(seed: UInt64(number))
            var asset = Asset(
                id: ObjectID(.asset, milliseconds: Int64(number), using: &random),
                revision: Revision(1),
                contentRevision: Revision(1)
            )
            asset.rating = number % 5
            asset.addedDate = Int64(number % 7)
            asset.caption = number % 4 == 0 ? nil : "\(number % 3)"
            return asset
        }
        var created = TransactionResult()
        created.assets = before.map { EntityChange(before: nil, after: $0) }
        try await fixture.write(created, sequence: 1)
        var changed = TransactionResult()
        for asset in before where asset.addedDate % 2 == 0 {
            var after = asset
            after.rating = 5 - asset.rating
            after.caption = asset.caption.map { $0 + "x" } ?? "y"
            after.revision = Revision(2)
            changed.assets.append(EntityChange(before: asset, after: after))
        }
        try await fixture.write(changed, sequence: 2)
        let touched = Dictionary(uniqueKeysWithValues: changed.assets.map { ($0.id, $0.before) })
        let sorts: [[SortDescriptor]] = try [
            [], [SortDescriptor("rating", ascending: false, of: .asset)], [SortDescriptor("caption", of: .asset)],
        ]
        for sort in sorts {
            let fetch = try Fetch(.assets(.library), sort: sort)
            let expected = before.sorted(by: fetch.areInIncreasingOrder).map(\.id)
            let (few, many) = try await fixture.store.read { reader in
                let rows = try reader.fetches.assetRows(fetch, .init()) ?? []
                let few = try ResultMerge(reader: reader, fetch: fetch).merged(rows, with: touched)
                let many = try ResultMerge(reader: reader, fetch: fetch, maxSearched: 0).merged(rows, with: touched)
                return (try reader.assets.identifiers(few), try reader.assets.identifiers(many))
            }
            #expect(few == expected && many == expected)
        }
    }

    @Test func `a record is decoded once, however many of its objects are read`() async throws {
        let fixture = try StoreFixture()
        let ids = (1...50).map { number -> ObjectID in
            var random = SeededRandom(seed: UInt64(number))
            return ObjectID(.asset, milliseconds: Int64(number), using: &random)
        }
        let assets = ids.map { Asset(id: $0, revision: Revision(1), contentRevision: Revision(1)) }
        var created = TransactionResult()
        created.assets = assets.map { EntityChange(before: nil, after: $0) }
        try await fixture.write(created, sequence: 1)
        var changed = TransactionResult()
        changed.assets = assets.map { before in
            var after = before
            after.isFavorite = true
            after.revision = Revision(2)
            return EntityChange(before: before, after: after)
        }
        try await fixture.write(changed, sequence: 2)
        let (favorites, decoded, first) = try await fixture.store.read { reader in
            let past = HistoricalState(reader: reader, sequence: 1, head: try reader.head())
            let favorites = try ids.map { try past.asset($0)?.isFavorite }
            let before = HistoricalState(reader: reader, sequence: 0, head: try reader.head())
            return (favorites, reader.records.decodedCount, try before.asset(ids[7]))
        }
        #expect(favorites.allSatisfy { $0 == false } && first == nil)
        #expect(decoded == 1)
    }

    @Test(.spec("T-27")) func `the albums of an asset are read in the order in which a new revision has them`()
        async throws
    {
        let fixture = try StoreFixture()
        var library = InMemoryLibrary()
        let (first, ids) = try library.perform([.create("p", 1)])
        let id = try #require(ids["p"])
        let albums = try (0..<8).map { try library.perform([.album("\($0)", id)]).0 }
        for record in [first] + albums {
            var result = TransactionResult()
            // The library in memory has another root folder, so lists are left out.
            (result.assets, result.collections) = (record.assets, record.collections)
            try await fixture.write(result, sequence: record.sequence)
        }
        let albumIDs = albums.flatMap { $0.collections.map(\.id) }
        let read = try await fixture.store.read { try StoredLibraryState($0.database).asset(id) }
        #expect(albumIDs != albumIDs.sorted(), "the identifiers are in another order than the rows")
        #expect(read?.memberships.map(\.collection) == albumIDs.sorted())
        #expect(read?.memberships == library.asset(id)?.memberships)
    }
}
