import ArgumentParser
import Contracts
import Foundation
import Hosting
import JSONValue
import Logging
import PhotoClient
import PhotoModel
import TestSupport

/// The cost of limited grants: the fetches of a client that sees a hundredth of a library, against those of an
/// unlimited client in an album of the same assets; and an owner's change with 1,000 grants, against one without any.
/// `--large` uses a library of 1,000,000 assets.
enum GrantBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "grants") else { return }
        if ["fetch", "page", "live"].contains(where: { bench.includes(group: "grants." + $0) }) {
            try await compareViews(bench)
        }
        if bench.includes("grants.changes") { try await compareChanges(bench) }
    }

    // MARK: Limited views

    private static func compareViews(_ bench: BenchmarkContext) async throws {
        let assets = bench.isFast ? 10_000 : bench.isLarge ? 1_000_000 : 100_000
        let shared = try await SharedAlbum(bench, assets: assets)
        let rounds = bench.amount(20, quick: 2)
        let text = "\(NumberFormat.text(Double(shared.count))) of \(NumberFormat.text(Double(assets))) assets"
        func compare(
            _ name: String,
            _ fetchText: String,
            aim: ComparisonTarget? = .ratio(1.5),
            _ time: @escaping (SharedAlbum.Reader) async throws -> Double
        ) async throws {
            try await bench.compare(
                [
                    Comparison(
                        name: "grants." + name,
                        ours: "\(fetchText), limited to \(text)",
                        peer: "the same in an album of these, by a key that reads everything",
                        unit: "µs",
                        smallerIsBetter: true,
                        aim: aim
                    )
                ],
                ours: { [try await time(shared.viewer)] },
                peer: { [try await time(shared.reader)] }
            )
        }
        try await compare("fetch", "first 100 by creation date") { reader in
            try await medianTime(rounds) { _ in _ = try await reader.library.assets(reader.sorted, count: 100) }
        }
        try await compare("fetch.changed", "first 100 by creation date, after a change of the library") { reader in
            try await median(
                rounds,
                of: { _ in
                    try await shared.change()
                    return try await seconds { _ = try await reader.library.assets(reader.sorted, count: 100) }
                }
            )
        }
        let token = try await shared.reader.library.currentToken().token
        try await compare("page", "1,000 from the middle of a result") { reader in
            try await medianTime(rounds) { _ in
                let page = try await reader.library.assets(
                    reader.sorted,
                    token: token,
                    from: shared.count / 2,
                    count: 1000
                )
                guard !page.assets.isEmpty else { throw BenchmarkError("an empty page") }
            }
        }
        try await compare("live.observe", "observing a fetch") { reader in
            try await median(
                rounds,
                of: { _ in
                    let fetch = shared.uniqueCopy(of: reader.fetch)
                    let time = try await seconds { _ = try await reader.observe(fetch) }
                    try await reader.unobserve()
                    return time
                }
            )
        }
        for reader in [shared.viewer, shared.reader] { _ = try await reader.observe(reader.sorted) }
        try await compare("live.details", "details of an observed fetch after a change") { reader in
            try await median(
                rounds,
                of: { _ in
                    try await shared.change()
                    return try await seconds { try await reader.fetchDetails() }
                }
            )
        }
        await shared.stop()
    }

    /// Returns the median of the times of some rounds, in microseconds.
    private static func median(_ rounds: Int, of work: (Int) async throws -> Double) async throws -> Double {
        var times: [Double] = []
        for round in 0..<rounds { times.append(try await work(round) * 1e6) }
        return SampleSummary(times).median
    }

    private static func medianTime(_ rounds: Int, _ work: (Int) async throws -> Void) async throws -> Double {
        try await median(rounds, of: { round in try await seconds { try await work(round) } })
    }

    // MARK: Changes

    private static func compareChanges(_ bench: BenchmarkContext) async throws {
        let few = try await GrantedLibrary(bench, grants: 0)
        let many = try await GrantedLibrary(bench, grants: bench.amount(1000, quick: 20))
        let count = bench.amount(500, quick: 20)
        try await bench.compare(
            [
                Comparison(
                    name: "grants.changes",
                    ours: "an owner's change of a favourite, median, with 1,000 limited grants of 100 assets",
                    peer: "without grants",
                    unit: "µs",
                    smallerIsBetter: true,
                    aim: .ratio(1.2)
                )
            ],
            ours: { [try await medianTime(count) { _ in try await many.favourites.change() }] },
            peer: { [try await medianTime(count) { _ in try await few.favourites.change() }] }
        )
        await few.services.stop()
        await many.services.stop()
    }
}

/// A catalog and a broker with a library of 10,000 assets and some limited grants.
private final class GrantedLibrary {
    let services: ServicesFixture
    let favourites: FavoriteToggler

    init(_ bench: BenchmarkContext, grants: Int) async throws {
        let library = try await bench.libraries.folder(assets: 10_000, for: "grants-\(grants)")
        services = try ServicesFixture(bench.paths, "grants-\(grants)", library: library)
        try await services.start("catalog")
        try await services.start("change-broker")
        favourites = try await FavoriteToggler(services.client)
        let assets = try await services.client.assets(FetchDescription(.assets), count: 1000).assets.map(\.id)
        for number in 0..<grants {
            let list = (0..<100).map { assets[(number * 37 + $0) % assets.count] }
            _ = try await services.client.catalog.ask(LimitGrant(identity: "uid:\(70_000 + number)", assets: list))
        }
    }
}

/// A library over TCP with two clients: one is limited to the assets of an album, the other reads everything.
private final class SharedAlbum {
    /// A client and its fetch.
    final class Reader {
        let library: PhotoLibrary
        /// All assets that the client may see, or those of the album.
        let fetch: FetchDescription
        private var observation = ""
        private var token: ChangeToken?

        init(_ library: PhotoLibrary, _ fetch: FetchDescription) { (self.library, self.fetch) = (library, fetch) }

        var sorted: FetchDescription {
            var sorted = fetch
            sorted.sort = [SortDescription(key: "creationDate", ascending: false)]
            return sorted
        }

        func observe(_ fetch: FetchDescription) async throws -> Int {
            let reply = try await library.changeBroker.ask(FetchObserve(fetch: fetch), deadline: .seconds(120))
                .result.details
            observation = reply.observation
            token = reply.token
            return reply.count
        }

        func unobserve() async throws {
            _ = try await library.changeBroker.ask(FetchUnobserve(observation: observation))
        }

        func fetchDetails() async throws {
            guard let token else { return }
            let request = FetchDetails(observation: observation, token: token)
            self.token = try await library.changeBroker.ask(request).result.token
        }
    }

    let count: Int
    let viewer: Reader
    let reader: Reader
    private let services: ServicesFixture
    private let favourites: [ObjectID]
    private var changeCount = 0
    private var fetchCount = 0

    /// The first of the six ports of the services.
    private static let port = 25_571

    init(_ bench: BenchmarkContext, assets: Int) async throws {
        count = assets / 100
        let folder = try await Self.generate(bench, assets, album: count)
        let keys = try bench.paths.folder("grants.keys")
        let safelight = bench.paths.program("safelight")
        func runKeys(_ arguments: String...) async throws {
            _ = try await runProgram(safelight, ["keys"] + arguments + ["--keys", keys + "/list"])
        }
        try await runKeys("server")
        try await runKeys("create", "viewer", "--access", "limited", "--output", keys + "/viewer")
        try await runKeys("create", "reader", "--output", keys + "/reader")
        services = try ServicesFixture(bench.paths, "grants", library: folder)
        let listen = ["--listen", "127.0.0.1:\(Self.port)", "--keys", keys + "/list"]
        try await services.start("catalog", listen)
        try await services.start("change-broker", listen)

        var albums = FetchDescription(.collections)
        albums.predicate = .string("title == 'Album of \(count)'")
        guard let album = try await services.client.collections(albums, count: 1).collections.first else {
            throw BenchmarkError("there is no album of \(count)")
        }
        var albumFetch = FetchDescription(.assets)
        albumFetch.container = album.id
        var (ids, token): ([ObjectID], ChangeToken?) = ([], nil)
        repeat {
            let page = try await services.client.assets(albumFetch, token: token, from: ids.count, count: 1000)
            guard !page.assets.isEmpty else { break }
            token = page.token
            ids += page.assets.map(\.id)
        } while true
        favourites = Array(ids.prefix(1000))
        _ = try await services.client.catalog.ask(LimitGrant(identity: "key:viewer", assets: ids))
        viewer = Reader(try Self.connect("viewer", keys), FetchDescription(.assets))
        reader = Reader(try Self.connect("reader", keys), albumFetch)
        let (visible, all) = (
            try await viewer.library.assets(FetchDescription(.assets), count: 0).count,
            try await reader.library.assets(albumFetch, count: 0).count
        )
        guard visible == all, visible == ids.count else {
            throw BenchmarkError("the limited client sees \(visible) assets; the album has \(all)")
        }
    }

    /// Generates a library with an album of the given size, and returns its folder. A library that an earlier run has
    /// stored is used again.
    private static func generate(_ bench: BenchmarkContext, _ assets: Int, album: Int) async throws -> String {
        let folder = try "\(bench.storedLibraries ?? bench.paths.folder("grants"))/grants-\(assets)"
        guard !FileManager.default.fileExists(atPath: folder + "/made") else { return folder }
        try? FileManager.default.removeItem(atPath: folder)
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        bench.log("generating a library of \(assets) assets")
        let seed = "\(GeneratedLibraries.seed)"
        try await runProgram(
            BenchmarkPaths.ownProgram,
            ["generate", "--assets", "\(assets)", "--seed", seed, "--library", folder, "--album-sizes", "\(album)"]
        )
        try Data().write(to: URL(fileURLWithPath: folder + "/made"))
        return folder
    }

    private static func connect(_ name: String, _ keys: String) throws -> PhotoLibrary {
        let variables = [
            "SAFELIGHT_HOST": "127.0.0.1:\(port)", "SAFELIGHT_SERVER_KEY": "\(keys)/\(name)/server.key",
            "SAFELIGHT_CLIENT_KEY": "\(keys)/\(name)/\(name).key_secret",
        ]
        let endpoints = try EndpointOptions.parse([]).resolve { variables[$0] }
        return try PhotoLibrary(
            endpoints: ServiceEndpoints(
                catalog: endpoints[.catalog],
                thumbnailer: endpoints[.thumbnailer],
                editor: endpoints[.editor],
                changeBroker: endpoints[.broker],
                feed: endpoints[.feed],
                edits: endpoints[.edits],
                security: endpoints.security
            ),
            client: "benchmark",
            logger: Logger(label: "benchmark", factory: { _ in SwiftLogNoOpLogHandler() })
        )
    }

    /// Returns a fetch with the same result that was not observed before.
    func uniqueCopy(of fetch: FetchDescription) -> FetchDescription {
        fetchCount += 1
        var other = fetch
        other.predicate = .string("pixelWidth > -\(fetchCount)")
        return other
    }

    /// Changes an asset of the album, and waits until the broker has published the change.
    func change() async throws {
        let patch = AssetPatch(rating: .some(changeCount / favourites.count % 5 + 1))
        let id = favourites[changeCount % favourites.count]
        changeCount += 1
        let outcome = try await services.client.perform([.updateAsset(.init(id: .id(id), set: patch))])
        try await services.waitUntilPublished(outcome.sequence)
    }

    func stop() async {
        for reader in [viewer, reader] { await reader.library.close() }
        await services.stop()
    }
}
