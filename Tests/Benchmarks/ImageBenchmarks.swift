import Messaging
import Contracts
import Foundation
import PhotoClient
import PhotoModel

/// Images end to end, from the request to the bytes in the client, against libvips on as many processors.
enum ImageBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "pictures") else { return }
        let photoSet = try await PhotoSet(bench, count: bench.amount(12, quick: 3))
        let vips = try await VipsThreadPool(bench)
        let services = try await ImageServicesFixture(bench, photoSet)
        let photos = try await services.importFiles(photoSet.photos)
        for size in [256, 1024] {
            try await compareThroughput(
                bench,
                services,
                vips,
                Work(
                    name: "pictures.\(size)",
                    text: "\(photos.count) JPEGs of 8, 12 and 24 megapixels",
                    assets: photos,
                    files: photoSet.photos,
                    sizes: [size],
                    aim: 1
                )
            )
        }
        try await compareThroughput(
            bench,
            services,
            vips,
            Work(
                name: "pictures.four-sizes",
                text: "256, 512, 1024 and 2048 pixels of \(photos.count) JPEGs of 8, 12 and 24 megapixels",
                assets: photos,
                files: photoSet.photos,
                sizes: [256, 512, 1024, 2048],
                aim: 2
            )
        )
        if photoSet.heicFiles.isEmpty {
            bench.addGap("pictures.heic", "there is no HEIC file in the folder of photos")
        } else {
            let assets = try await services.importFiles(photoSet.heicFiles)
            // Both sides use the embedded preview for the first size; the second size needs the whole image.
            for (name, size) in [("pictures.heic-preview", 128), ("pictures.heic", 512)] {
                try await compareThroughput(
                    bench,
                    services,
                    vips,
                    Work(
                        name: name,
                        text: "\(size) pixels of \(photoSet.heicFiles.count) HEICs with an embedded preview",
                        assets: assets,
                        files: photoSet.heicFiles,
                        sizes: [size],
                        resizeMode: .fast,
                        aim: 1
                    )
                )
            }
        }
        await services.stop()
    }

    private struct Work {
        var name: String
        var text: String
        var assets: [ObjectID]
        var files: [String]
        var sizes: [Int]
        var resizeMode = ImageResizeMode.exact
        var aim: Double
    }

    private static func compareThroughput(
        _ bench: BenchmarkContext,
        _ services: ImageServicesFixture,
        _ vips: VipsThreadPool,
        _ work: Work
    ) async throws {
        guard bench.includes(group: work.name) else { return }
        let images = Double(work.assets.count * work.sizes.count)
        try await bench.compare(
            [
                Comparison(
                    name: work.name,
                    ours: "image.request by PhotoClient, \(work.text), nothing cached",
                    peer: "vips_thumbnail in one process, \(vips.threads) threads",
                    unit: "images/s",
                    aim: .ratio(work.aim)
                )
            ],
            ours: {
                try await services.clearCache()
                return [images / (try await services.seconds(work.assets, work.sizes, work.resizeMode))]
            },
            peer: { [images / (try await vips.seconds(work.files, sizes: work.sizes))] }
        )
        try await services.clearCache()
        let own = services.process
        let ours = try await peakBytes(
            of: { ProcessTable.family(of: own) },
            during: { _ = try await services.seconds(work.assets, work.sizes, work.resizeMode) }
        )
        let peer = vips.process
        let theirs = try await peakBytes(
            of: { [peer] },
            during: { try await vips.run(work.files, sizes: work.sizes) }
        )
        for (name, bytes, text) in [
            ("service", ours, "peak memory of service and workers together, PSS"),
            ("vips", theirs, "peak memory of the peer, PSS, with Python's own"),
        ] {
            bench.addFigure(
                ReportFigure(name: "\(work.name).\(name)", text: text, value: Double(bytes) / 1_048_576, unit: "MiB")
            )
        }
    }
}

/// The services with photos in their library.
final class ImageServicesFixture {
    let services: ServicesFixture
    private let bench: BenchmarkContext
    private var warmUpAssets: [ObjectID] = []
    private var imports = 0
    private let options: [String]

    /// - Parameter options: further flags of the thumbnailer
    init(_ bench: BenchmarkContext, _ photoSet: PhotoSet, name: String = "pictures", options: [String] = [])
        async throws
    {
        self.bench = bench
        self.options = options
        services = try ServicesFixture(bench.paths, name)
        try await services.start("catalog")
        try await services.start("change-broker")
        try await services.start("thumbnailer", options)
        // ``clearCache()`` requests these at other sizes to start the workers.
        warmUpAssets = try await importFiles([photoSet.photos[0], photoSet.photos[0]])
    }

    var process: Int32 { services.process("thumbnailer") }
    var address: String { services.client.thumbnailer.address.description }

    /// Imports files, and returns the identifiers of their assets.
    func importFiles(_ paths: [String]) async throws -> [ObjectID] {
        var ids: [ObjectID] = []
        for path in paths {
            imports += 1
            let result = try await services.client.perform(
                [.createAsset(.init(ref: "a", resources: [NewResource(source: .path(path))]))],
                transaction: "take-\(imports)"
            )
            guard let id = result.id("a") else { throw BenchmarkError("no asset was created from \(path)") }
            ids.append(id)
        }
        return ids
    }

    /// Restarts the thumbnailer with an empty cache and running workers.
    func clearCache() async throws {
        await services.stop("thumbnailer")
        try? FileManager.default.removeItem(atPath: services.run + "/cache")
        try await services.start("thumbnailer", options)
        let client = services.client
        let warmUpAssets = self.warmUpAssets
        try await withThrowingTaskGroup(of: Void.self) { group in
            for (index, asset) in warmUpAssets.enumerated() {
                group.addTask { _ = try await client.image(Self.request(asset, 31 + index, .exact)) }
            }
            try await group.waitForAll()
        }
    }

    static func request(_ asset: ObjectID, _ size: Int, _ resizeMode: ImageResizeMode) -> ImageRequest {
        ImageRequest(
            asset: asset,
            targetSize: .size(width: size, height: size),
            resizeMode: resizeMode,
            deliveryMode: .highQualityFormat
        )
    }

    /// Requests all images at once, and returns the seconds until they have arrived.
    func seconds(_ assets: [ObjectID], _ sizes: [Int], _ resizeMode: ImageResizeMode) async throws -> Double {
        let client = services.client
        return try await Benchmarks.seconds {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for asset in assets {
                    for size in sizes.sorted(by: >) {
                        group.addTask {
                            let image = try await client.image(Self.request(asset, size, resizeMode))
                            guard !image.result.isCacheHit else { throw BenchmarkError("an image was cached") }
                        }
                    }
                }
                try await group.waitForAll()
            }
        }
    }

    func stop() async { await services.stop() }
}
