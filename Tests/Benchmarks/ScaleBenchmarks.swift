import Contracts
import Foundation
import GRDB
import JSONValue
import PhotoClient
import PhotoModel

/// The cost of the catalog's responses for a large library, against the same responses for one of 10,000 assets and
/// plain SQL on the same file. The large library has 100,000 assets, with `--large` 1,000,000.
enum ScaleBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "scale") else { return }
        let largeCount = bench.isLarge ? 1_000_000 : 100_000
        let small = try await ServedLibrary(bench, assets: 10_000, library: generate(bench, 10_000))
        let large = try await ServedLibrary(bench, assets: largeCount, library: generate(bench, largeCount))
        try await IdentifierBenchmarks.run(bench, large)
        try await comparePages(bench, small, large)
        try await compareAlbums(bench, small, large)
        try await compareCommits(bench, small, large)
        try await comparePlainSQL(bench, large)
        for served in [small, large] {
            let process = served.services.process("catalog")
            let bytes = ProcessTable.family(of: process).reduce(0) { $0 + ProcessTable.proportionalBytes($1) }
            bench.addFigure(
                ReportFigure(
                    name: "scale.memory.\(served.assets)",
                    text: "PSS of the catalog and its workers after the whole group",
                    value: Double(bytes) / 1_048_576,
                    unit: "MiB"
                )
            )
        }
        await small.services.stop()
        await large.services.stop()
    }

    /// Returns the sizes of the albums; the largest has a tenth of the library.
    private static func sizes(_ assets: Int) -> [Int] { [10, 1000, assets / 10] }

    /// Generates a library, and returns its folder. A library that an earlier run has stored is used again.
    private static func generate(_ bench: BenchmarkContext, _ assets: Int) async throws -> String {
        let parent = try bench.storedLibraries ?? bench.paths.folder("scale")
        let folder = "\(parent)/scale-\(assets)"
        guard !FileManager.default.fileExists(atPath: folder + "/made") else { return folder }
        try? FileManager.default.removeItem(atPath: folder)
        try FileManager.default.createDirectory(
            atPath: folder,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        bench.log("generating a library of \(assets) assets")
        let time = try await seconds {
            try await runProgram(
                BenchmarkPaths.ownProgram,
                [
                    "generate", "--assets", "\(assets)", "--seed", "\(GeneratedLibraries.seed)", "--albums",
                    "\(assets / 1000)",
                ]
                    + ["--trash", "1", "--library", folder, "--album-sizes"] + sizes(assets).map { "\($0)" }
            )
        }
        bench.addFigure(
            ReportFigure(
                name: "scale.generate.\(assets)",
                text: "Benchmarks generate",
                value: Double(assets) / time,
                unit: "assets/s"
            )
        )
        try Data().write(to: URL(fileURLWithPath: folder + "/made"))
        return folder
    }

    // MARK: Pages of the library

    private static let sorts = [
        "creationDate", "addedDate", "modificationDate", "contentModificationDate", "mediaType", "mediaSubtypes",
        "duration", "pixelWidth", "pixelHeight", "isFavorite", "isHidden", "burstIdentifier",
    ]

    private static func fetch(_ predicate: JSON?, _ sort: String?, ascending: Bool = true) -> FetchDescription {
        var fetch = FetchDescription(.assets)
        fetch.predicate = predicate
        if let sort { fetch.sort = [SortDescription(key: sort, ascending: ascending)] }
        return fetch
    }

    private static func comparePages(_ bench: BenchmarkContext, _ small: ServedLibrary, _ large: ServedLibrary)
        async throws
    {
        let keyword: JSON = ["any": "keywords", "op": "==", "value": "garden"]
        let folded: JSON = .string(#"ANY keywords ==[cd] "GARDEN""#)
        let results: [(name: String, predicate: JSON?, sorts: [String])] = [
            ("all", nil, sorts), ("favourites", "isFavorite == YES", sorts),
            ("keyword", keyword, ["creationDate", "addedDate", "modificationDate", "pixelWidth"]),
            ("keyword-folded", folded, ["creationDate"]),
            ("images", "mediaType == 'image'", ["creationDate", "addedDate", "pixelWidth"]),
            ("videos", "mediaType == 'video'", ["creationDate", "addedDate", "duration"]),
            ("panoramas", "(mediaSubtypes & 1) != 0", ["creationDate", "addedDate"]),
            ("keyword-images", .string(#"ANY keywords == "garden" AND mediaType == 'image'"#), ["creationDate"]),
        ]
        for (name, predicate, sorts) in results {
            for sort in sorts {
                for ascending in [true, false] {
                    let direction = ascending ? "asc" : "desc"
                    let fetch = fetch(predicate, sort, ascending: ascending)
                    try await compare(bench, "first.\(name).\(sort).\(direction)", small, large) { served in
                        try await served.medianMicroseconds(fetch, page: 100, rounds: rounds(bench))
                    }
                }
            }
            try await compare(bench, "count.\(name)", small, large) { served in
                try await served.medianMicroseconds(fetch(predicate, nil), page: 0, rounds: rounds(bench))
            }
        }
    }

    private static func rounds(_ bench: BenchmarkContext) -> Int { bench.amount(10, quick: 3) }

    private static func compare(
        _ bench: BenchmarkContext,
        _ name: String,
        _ small: ServedLibrary,
        _ large: ServedLibrary,
        _ time: @escaping (ServedLibrary) async throws -> Double
    ) async throws {
        try await bench.compare(
            [
                Comparison(
                    name: "scale.\(name)",
                    ours: "\(NumberFormat.text(Double(large.assets))) assets",
                    peer: "\(NumberFormat.text(Double(small.assets))) assets",
                    unit: "µs",
                    smallerIsBetter: true,
                    aim: .ratio(1.5)
                )
            ],
            ours: { [try await time(large)] },
            peer: { [try await time(small)] }
        )
    }

    // MARK: Albums and commits

    private static func album(_ served: ServedLibrary, _ size: Int) async throws -> FetchDescription {
        var albums = FetchDescription(.collections)
        albums.predicate = .string("title == 'Album of \(size)'")
        guard let found = try await served.services.client.collections(albums, count: 1).collections.first else {
            throw BenchmarkError("there is no album of \(size)")
        }
        var fetch = FetchDescription(.assets)
        fetch.container = found.id
        return fetch
    }

    private static func compareAlbums(_ bench: BenchmarkContext, _ small: ServedLibrary, _ large: ServedLibrary)
        async throws
    {
        for (name, fewer, more) in [("ten", 10, 10), ("thousand", 1000, 1000), ("largest", 1000, large.assets / 10)] {
            let fetches = [
                small.assets: try await album(small, fewer), large.assets: try await album(large, more),
            ]
            let counts = [
                small.assets: try await small.count(fetches[small.assets] ?? FetchDescription(.assets)),
                large.assets: try await large.count(fetches[large.assets] ?? FetchDescription(.assets)),
            ]
            for (position, fraction) in [("start", 0.0), ("middle", 0.5), ("end", 1.0)] {
                for afterChange in [false, true] where !afterChange || name == "largest" {
                    let favourites = [
                        small.assets: try await FavoriteToggler(small.services.client),
                        large.assets: try await FavoriteToggler(large.services.client),
                    ]
                    try await compare(
                        bench,
                        "album.\(name).\(position)\(afterChange ? ".after-a-change" : "")",
                        small,
                        large
                    ) { served in
                        let count = counts[served.assets] ?? 0
                        let from = Int(Double(max(0, count - 100)) * fraction)
                        var times: [Double] = []
                        for _ in 0..<rounds(bench) {
                            if afterChange { try await favourites[served.assets]?.change() }
                            times.append(
                                try await seconds {
                                    _ = try await served.services.client.assets(
                                        fetches[served.assets] ?? FetchDescription(.assets),
                                        from: from,
                                        count: 100
                                    )
                                } * 1e6
                            )
                        }
                        return SampleSummary(times).median
                    }
                }
            }
        }
    }

    private static func compareCommits(_ bench: BenchmarkContext, _ small: ServedLibrary, _ large: ServedLibrary)
        async throws
    {
        let favourites = [
            small.assets: try await FavoriteToggler(small.services.client),
            large.assets: try await FavoriteToggler(large.services.client),
        ]
        try await compare(bench, "commit", small, large) { served in
            try await favourites[served.assets]?.medianMicroseconds(bench.amount(100, quick: 10)) ?? .nan
        }
        try await compare(bench, "first-after-a-commit", small, large) { served in
            var times: [Double] = []
            for _ in 0..<rounds(bench) {
                try await favourites[served.assets]?.change()
                let fetch = fetch("rating >= 4", "creationDate", ascending: false)
                times.append(try await seconds { _ = try await served.services.client.assets(fetch) } * 1e6)
            }
            return SampleSummary(times).median
        }
    }

    // MARK: Plain SQL

    /// Measures queries that need a scan, because no index or counter helps, against the same SQL on the same file: the
    /// aim is about the speed of SQLite's own scan.
    private static func comparePlainSQL(_ bench: BenchmarkContext, _ large: ServedLibrary) async throws {
        var configuration = Configuration()
        configuration.readonly = true
        configuration.prepareDatabase { try $0.execute(sql: "PRAGMA cache_size = -8192") }
        let queue = try DatabaseQueue(
            path: large.services.library + "/library.sqlite",
            configuration: configuration
        )
        let album = try await album(large, large.assets / 10)
        guard let identifier = album.container else { return }
        let member =
            "FROM membership m JOIN asset a ON a.row = m.asset WHERE m.shown = 1 AND m.collection = "
            + "(SELECT row FROM collection WHERE id = '\(identifier)')"
        // Each query has a different constant, because the catalog would cache the count of a repeated query.
        var number: Int64 = 0
        func nextNumber() -> Int64 {
            number += 1
            return number
        }
        let queries: [(name: String, fetch: (Int64) -> FetchDescription, page: Int, sql: (Int64) -> String)] = [
            (
                "count.rating", { fetch(.string("rating >= 4 AND duration != \($0)"), nil) }, 0,
                { "SELECT count(*) FROM asset WHERE visible = 1 AND rating >= 4 AND duration <> \($0)" }
            ),
            (
                "count.since",
                { fetch(["key": "creationDate", "op": ">", "value": .int(1_500_000_000_000_000 + $0)], nil) }, 0,
                { "SELECT count(*) FROM asset WHERE visible = 1 AND creation_date > \(1_500_000_000_000_000 + $0)" }
            ),
            (
                "sort.filename",
                { fetch(.string("rating >= 4 AND duration != \($0)"), "originalFilename") }, 100,
                {
                    """
                    SELECT *, (SELECT count(*) FROM asset WHERE visible = 1 AND rating >= 4 AND duration <> \($0))
                    FROM asset WHERE visible = 1 AND rating >= 4 AND duration <> \($0)
                    ORDER BY original_filename ASC NULLS LAST, id LIMIT 100
                    """
                }
            ),
            (
                "album.sort.pixelWidth",
                {
                    var fetch = fetch(.string("duration != \($0)"), "pixelWidth")
                    fetch.container = identifier
                    return fetch
                }, 100,
                {
                    """
                    SELECT a.*, (SELECT count(*) \(member) AND a.duration <> \($0)) \(member) AND a.duration <> \($0)
                    ORDER BY a.pixel_width, a.id LIMIT 100
                    """
                }
            ),
        ]
        for query in queries {
            try await bench.compare(
                [
                    Comparison(
                        name: "scale.plain.\(query.name)",
                        ours: "catalog, \(NumberFormat.text(Double(large.assets))) assets",
                        peer: "the same SQL on the same file",
                        unit: "µs",
                        smallerIsBetter: true,
                        aim: .ratio(1.5)
                    )
                ],
                ours: {
                    let time = try await seconds {
                        _ = try await large.services.client.assets(query.fetch(nextNumber()), count: query.page)
                    }
                    return [time * 1e6]
                },
                peer: {
                    let sql = query.sql(nextNumber())
                    let time = try await blockingSeconds { _ = try queue.read { try Row.fetchAll($0, sql: sql) } }
                    return [time * 1e6]
                }
            )
        }
    }
}
