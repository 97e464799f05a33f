import Contracts
import JSONValue
import Logging
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Thumbnailer

/// Tests of the assets in the thumbnailer's memory, compared with the catalog's table of last changes.
@Suite(.timeLimit(.minutes(1)))
struct AssetResolverTests {
    private let library = "0123456789abcdef0123456789abcdef"
    private let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func token(_ sequence: Int64) -> ChangeToken { ChangeToken(library: library, sequence: sequence) }

    @Test(.spec("S-90"))
    func `an asset in memory is used until a change of it is recorded, even if the feed is behind`() async throws {
        let folder = try TemporaryFolder("resolver")
        let path = LastChangeFile.path(in: folder.path)
        let ids = (1...2).map { number -> ObjectID in
            var random = SeededRandom(seed: UInt64(number))
            return ObjectID(.asset, milliseconds: Int64(number), using: &random)
        }
        let head = AwaitableValue<Int64>(5)
        let library = library
        let resolver = AssetResolver(metrics: ThumbnailerMetrics(), tablePath: path) { requested, _ throws(RPCError) in
            let sequence = head.current
            let assets = requested.map { Asset(id: $0, contentRevision: Revision(sequence)) }
            return FetchAssets.Result(
                token: ChangeToken(library: library, sequence: sequence),
                count: assets.count,
                assets: assets
            )
        }
        func isKnown(_ id: ObjectID) -> Bool { resolver.cachedAssets([id], atLeast: nil) != nil }

        resolver.confirm(token(5), logger)
        _ = try await resolver.resolve(ids, atLeast: nil)
        #expect(!isKnown(ids[0]), "without the table nothing is served from memory")
        #expect(resolver.metrics["isFollowing"] == false)
        let file = try LastChangeFile(path: path, library: library, sequence: 5)
        resolver.confirm(token(5), logger)
        #expect(resolver.metrics["isFollowing"] == true)
        #expect(isKnown(ids[0]) && isKnown(ids[1]))

        try file.record([(ids[0].text, 6)], head: 6)
        head.withLock { $0 = 6 }
        #expect(!isKnown(ids[0]) && isKnown(ids[1]))
        let current = try await resolver.resolve([ids[0]], atLeast: nil)
        #expect(current.assets[ids[0]]?.contentRevision == Revision(6) && current.sequence == 6)
        #expect(!isKnown(ids[0]), "the feed is still behind")
        resolver.confirm(token(6), logger)
        #expect(isKnown(ids[0]) && isKnown(ids[1]))

        // The table of another library, or one that is no longer written, is not used.
        resolver.confirm(token(7), logger)
        #expect(!isKnown(ids[1]))
        _ = try LastChangeFile(path: path, library: String(repeating: "f", count: 32), sequence: 9)
        resolver.confirm(token(8), logger)
        #expect(!isKnown(ids[1]))
    }
}
