import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of reads: they end when nobody waits for them, one client leaves a connection to the others, and earlier states
/// cost no more than the records in which they are.
@Suite(.timeLimit(.minutes(1)))
struct ReadTests {
    @Test func `a read whose task is cancelled ends, between statements and in a long one`() async throws {
        let fixture = try StoreFixture()
        let begun = AwaitableValue(false)
        let many = Task {
            try await fixture.store.read { reader in
                begun.withLock { $0 = true }
                // Without end, but for the cancellation.
                while true { _ = try reader.head() }
            }
        }
        await begun.wait { $0 }
        many.cancel()
        await #expect(throws: CancellationError.self) { try await many.value }

        let isLong = AwaitableValue(false)
        let one = Task {
            try await fixture.store.read { reader in
                isLong.withLock { $0 = true }
                while true { try reader.checkCancellation() }
            }
        }
        await isLong.wait { $0 }
        one.cancel()
        await #expect(throws: CancellationError.self) { try await one.value }
        // The connections are as good as before.
        for _ in 0..<8 { #expect(try await fixture.store.read { try $0.head().sequence } == 0) }
    }

    @Test func `a client with many long reads leaves a connection to another client`() async throws {
        let fixture = try StoreFixture()
        let running = AwaitableValue(0)
        let reads = (0..<8).map { _ in
            Task {
                try await ReadSource.$current.withValue(.connection(ConnectionID(test: 1))) {
                    try await fixture.store.read { reader in
                        running.withLock { $0 += 1 }
                        while true { try reader.checkCancellation() }
                    }
                }
            }
        }
        await running.wait { $0 == 3 }
        let other = try await ReadSource.$current.withValue(.connection(ConnectionID(test: 2))) {
            try await fixture.store.read { try $0.head().sequence }
        }
        #expect(other == 0 && running.current == 3)
        for read in reads { read.cancel() }
        for read in reads { await #expect(throws: CancellationError.self) { try await read.value } }
    }

    @Test func `a record is decoded once, however many of its objects are asked for`() async throws {
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
}
