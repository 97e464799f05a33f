import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoKit
import PhotoModel
import Synchronization

/// The cost of PhotoKit's API against the protocol below it.
enum PhotoKitBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "photokit") else { return }
        try await compareScroll(bench)
        try await compareObserver(bench)
    }

    private static func connect(_ services: ServicesFixture) throws -> PHPhotoLibrary {
        try PHPhotoLibrary.connect(
            PHPhotoLibrary.Configuration(runFolder: services.run, client: "benchmark", purpose: "benchmarks")
        )
    }

    /// Reads every asset of a large library once, as scrolling through a list does.
    private static func compareScroll(_ bench: BenchmarkContext) async throws {
        guard bench.includes("photokit.scroll") else { return }
        let count = bench.amount(100_000, quick: 2000)
        let folder = try await bench.libraries.folder(assets: count, for: "photokit")
        let services = try ServicesFixture(bench.paths, "photokit", library: folder)
        try await services.start("catalog")
        let library = try connect(services)
        var fetch = FetchDescription(.assets)
        fetch.sort = [SortDescription(key: "creationDate", ascending: false)]
        var (growth, total) = (0, 0)
        try await bench.compare(
            [
                Comparison(
                    name: "photokit.scroll",
                    ours: "PHFetchResult of \(count) assets, each read once, in pages of 256",
                    peer: "the same assets by fetch.assets, decoded, in pages of 256",
                    unit: "ms",
                    smallerIsBetter: true,
                    aim: .ratio(1.3)
                )
            ],
            pairs: min(5, bench.pairs),
            ours: {
                let before = ProcessTable.residentBytes(getpid())
                let options = PHFetchOptions()
                options.sortDescriptors = [NSSortDescriptor(key: "creationDate", ascending: false)]
                let time = await seconds {
                    let result = PHAsset.fetchAssets(with: options)
                    total = result.count
                    for index in 0..<result.count where result[index].pixelWidth < 0 { total = -1 }
                }
                growth = max(growth, ProcessTable.residentBytes(getpid()) - before)
                return [time * 1000]
            },
            peer: { [fetch] in
                let time = try await seconds {
                    for try await asset in services.client.allAssets(fetch, pageSize: 256) where asset.pixelWidth < 0 {
                        total = -1
                    }
                }
                return [time * 1000]
            },
            notes: { ["\(total) assets; this process grew by at most \(growth / 1_048_576) MiB while it scrolled"] }
        )
        await library.close()
        await services.stop()
    }

    /// Measures the time from a commit to an observer, against the time to a subscriber of the feed.
    private static func compareObserver(_ bench: BenchmarkContext) async throws {
        guard bench.includes("photokit.observer") else { return }
        let folder = try await bench.libraries.folder(assets: 10_000, for: "photokit-observer")
        let services = try ServicesFixture(bench.paths, "photokit-observer", library: folder)
        try await services.start("catalog")
        try await services.start("change-broker")
        let favourites = try await FavoriteToggler(services.client)
        let library = try connect(services)
        let result = PHAsset.fetchAssets(with: nil)
        let observer = TimedObserver()
        library.register(observer)
        let subscriber = try Subscriber(
            address: services.client.endpoints.feed,
            thread: try PollThread(name: "raw"),
            logger: Logger(label: "raw", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        await subscriber.subscribe(["changes"])
        var messages = subscriber.messages.makeAsyncIterator()
        let count = bench.amount(1000, quick: 20)
        try await bench.compare(
            [
                Comparison(
                    name: "photokit.observer",
                    ours:
                        "commit to photoLibraryDidChange, one change at a time, a fetch of \(result.count) assets held",
                    peer: "commit to the message at a subscriber of the feed, of the same changes",
                    unit: "µs",
                    smallerIsBetter: true,
                    aim: .ratio(1.3)
                )
            ],
            ours: {
                _ = observer.takeTimes()
                for _ in 0..<count {
                    try await favourites.change()
                    await observer.waitForChange()
                }
                return [SampleSummary(observer.takeTimes()).median]
            },
            peer: {
                // Messages of the observer's changes have arrived meanwhile and are skipped.
                var times: [Double] = []
                for _ in 0..<count {
                    let start = Date().timeIntervalSince1970 * 1e6
                    try await favourites.change()
                    while let message = await messages.next() {
                        let now = Date().timeIntervalSince1970 * 1e6
                        let date = try JSON(parsing: message.frames.first ?? [])["date"]?.doubleValue ?? 0
                        if date < start { continue }
                        times.append(now - date)
                        break
                    }
                }
                return [SampleSummary(times).median]
            }
        )
        await subscriber.close()
        await library.close()
        await services.stop()
    }
}

/// An observer that records the time from the commit of each change to its arrival.
private final class TimedObserver: PHPhotoLibraryChangeObserver {
    private let times = Mutex<[Double]>([])
    private let arrivals = AsyncStream<Void>.makeStream()

    func photoLibraryDidChange(_ changeInstance: PHChange) {
        let now = Date().timeIntervalSince1970
        guard let date = changeInstance.date else { return }
        times.withLock { $0.append((now - date.timeIntervalSince1970) * 1e6) }
        arrivals.continuation.yield()
    }

    /// Waits for the next change.
    func waitForChange() async {
        var iterator = arrivals.stream.makeAsyncIterator()
        await iterator.next()
    }

    /// Returns the microseconds of all changes since the last call.
    func takeTimes() -> [Double] {
        times.withLock { times in
            defer { times = [] }
            return times
        }
    }
}
