import CZeroMQ
import Contracts
import Foundation
import Glibc
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization
import TestSupport

/// Latency of cache hits against a bare round trip of the same bytes, and of the first degraded image.
enum HitBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "hits") else { return }
        let photoSet = try await PhotoSet(bench, count: 6)
        let awake = AwakeCores()
        defer { awake.stop() }
        try await compareHits(bench, photoSet, name: "hits.memory", options: [], aim: 1.2, in: "memory")
        try await compareHits(
            bench,
            photoSet,
            name: "hits.disk",
            options: ["--memory-mib", "0"],
            aim: 2,
            in: "the disk"
        )
        try await compareDegraded(bench, photoSet)
    }

    private static func compareHits(
        _ bench: BenchmarkContext,
        _ photoSet: PhotoSet,
        name: String,
        options: [String],
        aim: Double,
        in cache: String
    ) async throws {
        guard bench.includes(name) else { return }
        let services = try await ImageServicesFixture(bench, photoSet, name: name, options: options)
        let asset = try await services.importFiles([photoSet.photos[0]])[0]
        let request = Self.requestText(ImageServicesFixture.request(asset, 256, .exact))
        let address = services.address
        // The first request renders the image; a second later the feed confirms the asset.
        _ = try await runBlocking { try roundTrips(request, at: address, count: 1) }
        try await Task.sleep(for: .seconds(2))
        let bytes = try await runBlocking { try roundTrips(request, at: address, count: 1) }.bytes
        let echoAddress = "ipc://\(services.services.run)/echo.sock"
        let echo = try Child(["peer-echo", "--endpoint", echoAddress, "--reply-bytes", "\(bytes)"])
        try await echo.expect("ready")
        let count = bench.amount(2_000, quick: 200)
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "image.request of an image of 256 pixels in \(cache), bare DEALER, one at a time",
                    peer: "bare DEALER/ROUTER echo, \(request.utf8.count)+\(bytes) bytes, the cores kept awake",
                    unit: "µs",
                    smallerIsBetter: true,
                    aim: .ratio(aim)
                )
            ],
            ours: { [try await runBlocking { try roundTrips(request, at: address, count: count) }.median] },
            peer: { [try await runBlocking { try roundTrips(request, at: echoAddress, count: count) }.median] }
        )
        withExtendedLifetime(echo) {}
        await services.stop()
    }

    /// Measures the time from the request to the first degraded image, for photos not requested before: with a preview
    /// of 160x120 in the file, as cameras write it, and without one. Without one, the photo is decoded at an eighth of
    /// its size.
    private static func compareDegraded(_ bench: BenchmarkContext, _ photoSet: PhotoSet) async throws {
        guard bench.includes(group: "hits.degraded") else { return }
        let services = try await ImageServicesFixture(bench, photoSet, name: "degraded")
        let plain = try await services.importFiles(photoSet.photos)
        let client = services.services.client
        let address = services.address
        if let exiftool = TestPaths.program("exiftool") {
            let previewed = try await services.importFiles(try await photoSet.copyWithPreviews(bench, exiftool))
            let health = #"{"jsonrpc":"2.0","id":1,"method":"health","params":{}}"#
            try await bench.compare(
                [
                    Comparison(
                        name: "hits.degraded",
                        ours: "image.request of 512 pixels, opportunistic: until the embedded preview arrives",
                        peer: "the thumbnailer's `health`, which asks the catalog",
                        unit: "µs",
                        smallerIsBetter: true,
                        aim: .figure(4000)
                    )
                ],
                ours: {
                    try await services.clearCache()
                    return [try await microsecondsUntilDegraded(client, previewed, 512)]
                },
                peer: { [try await runBlocking { try roundTrips(health, at: address, count: 50) }.median] }
            )
        } else {
            bench.addGap("hits.degraded", "exiftool is not installed (Debian: libimage-exiftool-perl)")
        }
        try await services.clearCache()
        // The larger photos have no degraded image at this size, because decoding the photo is as cheap.
        let decoded = try await microsecondsUntilDegraded(client, plain, 2048)
        bench.addFigure(
            ReportFigure(
                name: "hits.degraded.decoded",
                text: "image.request of 2048 pixels, opportunistic: until a cheap decode of the photo arrives",
                value: decoded,
                unit: "µs"
            )
        )
        await services.stop()
    }

    /// Returns the median time in microseconds until the first degraded image of each asset.
    private static func microsecondsUntilDegraded(_ client: PhotoLibrary, _ assets: [ObjectID], _ size: Int)
        async throws -> Double
    {
        var times: [Double] = []
        for asset in assets {
            if let time = try await microsecondsUntilDegraded(client, asset, size) { times.append(time) }
        }
        guard times.count * 2 > assets.count else { throw BenchmarkError("no degraded images arrived") }
        return SampleSummary(times).median
    }

    /// Returns the microseconds until the first degraded image; nil if none preceded the final image.
    private static func microsecondsUntilDegraded(_ client: PhotoLibrary, _ asset: ObjectID, _ size: Int) async throws
        -> Double?
    {
        var request = ImageServicesFixture.request(asset, size, .exact)
        request.deliveryMode = .opportunistic
        let start = Clocks.microseconds()
        var first: Int64?
        _ = try await client.image(request) { _, _ in
            if first == nil { first = Clocks.microseconds() }
        }
        return first.map { Double($0 - start) }
    }

    private static func requestText(_ request: ImageRequest) -> String {
        let object: JSONObject = [
            "jsonrpc": "2.0", "id": 1, "method": .string(ImageRequest.method), "params": request.json,
        ]
        return JSON.object(object).text
    }

    /// Repeats a request, one at a time, and returns the median time in microseconds and the bytes of a reply.
    private static func roundTrips(_ request: String, at address: String, count: Int) throws -> (
        median: Double, bytes: Int
    ) {
        let socket = try BareSocket(ZMQ_DEALER, BareContext())
        try socket.connect(address)
        let frame = Array(request.utf8)
        var times: [Double] = []
        var bytes = 0
        for index in 0...count {
            let start = Clocks.microseconds()
            try socket.send(frame)
            bytes = 0
            while let (size, more) = try socket.receive({ $0.count }) {
                bytes += size
                if !more { break }
            }
            // The first request includes connecting.
            if index > 0 { times.append(Double(Clocks.microseconds() - start)) }
        }
        return (SampleSummary(times).median, bytes)
    }
}

/// Threads that keep the processors from entering idle states between two messages, which would distort latencies. They
/// run only while a processor is idle.
final class AwakeCores: Sendable {
    private let isStopped = Atomic<Bool>(false)
    /// `SCHED_IDLE`, which Glibc's Swift module does not import.
    private static let idlePolicy: Int32 = 5

    init() {
        for _ in 0..<ProcessInfo.processInfo.activeProcessorCount {
            Thread.detachNewThread { [self] in
                var parameters = sched_param(sched_priority: 0)
                sched_setscheduler(0, Self.idlePolicy, &parameters)
                while !isStopped.load(ordering: .relaxed) {}
            }
        }
    }

    func stop() { isStopped.store(true, ordering: .relaxed) }
}
