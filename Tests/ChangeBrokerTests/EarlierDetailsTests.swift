import Messaging
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import TestSupport
import Testing

@testable import ChangeBroker

/// Tests of observed fetches whose details need earlier changes: the deletion of an album, and records from before the
/// observation, of which one response reads a limited number.
@Suite(.timeLimit(.minutes(5)), .serialized)
struct EarlierDetailsTests: ObservationSteps {
    private static let album = RandomEntities.id(.assetCollection, 1)

    /// Creates an album with two members, and returns a fetch of it.
    private func makeAlbum(_ catalog: FakeCatalog) async throws -> FetchDescription {
        let members = try (1...2).map { number in
            var asset = Asset(id: assetID(UInt64(number)), revision: Revision(1))
            asset.memberships = [Membership(collection: Self.album, key: try #require(OrderKey("\(number)")))]
            return EntityChange(before: nil, after: asset)
        }
        let album = AssetCollection(id: Self.album, revision: Revision(1))
        await catalog.commit(members, collections: [EntityChange(before: nil, after: album)])
        var fetch = FetchDescription(.assets)
        fetch.container = Self.album
        return fetch
    }

    private func deleteAlbum(_ catalog: FakeCatalog) async {
        let members = await catalog.assets.values.map { asset in
            var after = asset
            after.memberships = []
            return EntityChange(before: asset, after: after)
        }
        let album = AssetCollection(id: Self.album, revision: Revision(1))
        await catalog.commit(members, collections: [EntityChange(before: album, after: nil)])
    }

    @Test(.spec("S-65", "S-67"))
    func `if an album is deleted, the observers of its assets are notified of the removals and the deletion`()
        async throws
    {
        try await BrokerFixture.with { fixture in
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    let fetch = try await makeAlbum(fixture.catalog)
                    try await fixture.waitUntilCaughtUp()
                    let start = await fixture.catalog.token
                    let observed = try await observe(fetch, fixture, since: start)
                    #expect(observed.details.count == 2 && !observed.details.objectWasDeleted)
                    let live = try await fixture.subscriber([observed.topic])
                    await deleteAlbum(fixture.catalog)
                    let message = try #require(try await live.changes(1).first?.json)
                    #expect(message["objectWasDeleted"] == true)
                    let notified = try ChangeDetails(json: try #require(message["details"]))
                    #expect(notified.removed.map(\.id) == ids(1, 2) && notified.countAfter == 0)
                    try await fixture.waitUntilCaughtUp()
                    let since = try await details(observed, fixture, since: start)
                    #expect(since.details == notified && since.objectWasDeleted && since.count == 0)
                    // A collection may exist again with the same identifier, as moments do.
                    let album = AssetCollection(id: Self.album, revision: Revision(1))
                    await fixture.catalog.commit([], collections: [EntityChange(before: nil, after: album)])
                    try await fixture.waitUntilCaughtUp()
                    #expect(try await details(observed, fixture, since: since.token).objectWasDeleted == false)
                }
            }
        }
    }

    @Test(.spec("S-65", "S-67"))
    func `the assets of a deleted album can be observed from a token before the deletion`() async throws {
        try await BrokerFixture.with { fixture in
            let fetch = try await makeAlbum(fixture.catalog)
            let start = await fixture.catalog.token
            await deleteAlbum(fixture.catalog)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    // Without a token, or since a token after the deletion, there is no album to observe.
                    for token in [nil, await fixture.catalog.token] {
                        let error = await #expect(throws: RPCError.self) {
                            try await observe(fetch, fixture, since: token)
                        }
                        #expect(error?.errorCode == .identifierNotFound)
                    }
                    let observed = try await observe(fetch, fixture, since: start)
                    #expect(observed.details.objectWasDeleted && observed.details.count == 0)
                    #expect(observed.details.details?.removed.map(\.id) == ids(1, 2))
                }
            }
        }
    }

    @Test func `details read at most 10,000 earlier records, and beyond them return the whole list`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4], in: fixture)
            let start = await fixture.catalog.token
            await fixture.catalog.rate(3, 3)
            for _ in 1..<10_000 { await fixture.catalog.commit([EntityChange<Asset>]()) }
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let read = try await observe(best(), fixture, since: start).details
                    #expect(read.details?.inserted.map(\.id) == ids(3) && read.ids == nil)
                }
                await fixture.catalog.commit([EntityChange<Asset>]())
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let whole = try await observe(best(), fixture, since: start).details
                    #expect(whole.details?.hasIncrementalChanges == false && whole.ids == ids(1, 2, 3))
                }
            }
        }
    }

    @Test func `details read at most 16 MiB of earlier records, and beyond them return the whole list`() async throws {
        try await BrokerFixture.with { fixture in
            await rateAssets([5, 4], in: fixture)
            let start = await fixture.catalog.token
            await fixture.catalog.rate(3, 3)
            // Each record has a MiB, of assets that are not in the result.
            let caption = String(repeating: "x", count: 65_000)
            @Sendable func commit(_ count: Int) async {
                for _ in 0..<count {
                    let assets = (100..<100 + FakeCatalog.largeRecord).map { number in
                        var asset = Asset(id: assetID(UInt64(number)), revision: Revision(1))
                        asset.caption = caption
                        return EntityChange(before: nil, after: asset)
                    }
                    await fixture.catalog.commit(assets)
                }
            }
            await commit(15)
            try await fixture.withCatalog {
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    let read = try await observe(best(), fixture, since: start).details
                    #expect(read.details?.inserted.map(\.id) == ids(3) && read.ids == nil)
                }
                try await fixture.withBroker { _ in
                    try await fixture.waitUntilCaughtUp()
                    // Records from the catalog are counted while they are read.
                    await commit(8)
                    try await fixture.waitUntilCaughtUp()
                    let whole = try await observe(best(), fixture, since: start).details
                    #expect(whole.details?.hasIncrementalChanges == false && whole.ids == ids(1, 2, 3))
                    // The size of records in the ring is known before they are read.
                    let token = await fixture.catalog.token
                    await fixture.catalog.rate(4, 2)
                    await commit(17)
                    try await fixture.waitUntilCaughtUp()
                    var other = best()
                    other.predicate = "rating >= 1"
                    let requestsBefore = await fixture.catalog.pageRequests
                    let ring = try await observe(other, fixture, since: token).details
                    #expect(ring.details?.hasIncrementalChanges == false && ring.ids == ids(1, 2, 3, 4))
                    #expect(await fixture.catalog.pageRequests == requestsBefore)
                }
            }
        }
    }
}
