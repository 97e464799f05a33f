import Basics
import Contracts
import Foundation
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization
import TestSupport
import Testing

/// A library ten times as large as its budget of local bytes, with a disk-backed S3 server whose request log is the
/// oracle.
///
/// Only with `SAFELIGHT_SOAK`: each round is 410 MiB of originals, so that `SAFELIGHT_SOAK=50` is 20 GiB under a budget
/// of 2 GiB. The originals are sparse files of 5 MiB; the library and the store write all of their bytes.
@Suite(.serialized, .timeLimit(.minutes(90)), .enabled(if: TestEnvironment.rounds(1) > 1, "SAFELIGHT_SOAK runs it"))
struct RemoteStorageSoakTests {
    private static let count = TestEnvironment.rounds(82)
    private static let fileBytes: Int64 = 5 << 20
    private static let totalBytes = Int64(count) * fileBytes
    private static let budget = totalBytes / 10
    /// The maximum of local bytes above the budget during an import: imports are delayed above 256 MiB, and the rest is
    /// already in transfer then.
    private static let slack: Int64 = 768 << 20
    /// The size of the thumbnails that are rendered in advance.
    private static let size = TargetSize.size(width: 256, height: 256)

    @Test func `an import of ten times the budget stays within it, at half the speed, and thumbnails need no store`()
        async throws
    {
        let originals = try TemporaryFolder("soak-originals")
        let photos = (0..<16).map { TestImages.jpeg(width: 320, height: 240, seed: $0) }
        for index in 0..<Self.count {
            let path = originals.file("photo-\(index).jpg")
            // The number after the image makes the bytes of each original different.
            let photo = photos[index % photos.count] + Array("\(index)".utf8)
            try Data(photo).write(to: URL(fileURLWithPath: path))
            #expect(truncate(path, off_t(Self.fileBytes)) == 0)
        }
        let plain = try await Self.plainSeconds(originals)
        let store = try S3Server(.files)
        let environment = try store.environment.merging([
            "SAFELIGHT_OBJECT_STORE_POLICY": "optimize", "SAFELIGHT_LOCAL_BYTES": "\(Self.budget)",
        ]) { $1 }
        let services = try SafelightFixture("soak-optimized", environment: environment)
        try services.start([.catalog, .changeBroker, .thumbnailer])
        let library = try services.library()
        let maximum = Mutex<Int64>(0)
        let sampling = Task {
            while !Task.isCancelled {
                let bytes = try await library.catalog.ask(StorageStatus()).result.localBytes
                maximum.withLock { $0 = max($0, bytes) }
                try await Task.sleep(for: .milliseconds(200))
            }
        }
        defer { sampling.cancel() }
        let optimized = try await Self.importSeconds(originals, services)
        let peak = maximum.withLock { $0 }
        let (uploaded, behind) = try await Self.secondsUntilUploaded(library)
        TestPaths.report(
            """
            import of \(Self.count) files, \(Self.totalBytes >> 20) MiB: plain \(Int(plain)) s, with a budget of \
            \(Self.budget >> 20) MiB \(Int(optimized)) s; at most \(peak >> 20) MiB were here, at the end \
            \(uploaded.localBytes >> 20) MiB, all uploaded and given up \(Int(behind)) s after the import
            """
        )
        #expect(optimized <= 2 * plain, "\(optimized) s, without a store \(plain) s")
        #expect(peak <= Self.budget + Self.slack, "\(peak) of \(Self.budget)")
        #expect(uploaded.remoteCount == Self.count && uploaded.failedCount == 0)
        try await Self.requestAllThumbnails(library, services, store)
        await library.close()
        #expect(services.stop() == [])
    }

    /// Imports into a library without a store, which is removed afterwards.
    private static func plainSeconds(_ originals: TemporaryFolder) async throws -> Double {
        let services = try SafelightFixture("soak-plain")
        try services.start([.catalog, .changeBroker, .thumbnailer])
        let seconds = try await importSeconds(originals, services)
        #expect(services.stop() == [])
        return seconds
    }

    private static func importSeconds(_ originals: TemporaryFolder, _ services: SafelightFixture) async throws
        -> Double
    {
        let start = ContinuousClock.now
        let run = try services.safelight(["import", originals.path, "--json"], seconds: 3600)
        let time = ContinuousClock.now - start
        #expect(run.status == 0, "\(run.errors.suffix(500))")
        return time / .seconds(1)
    }

    private static func secondsUntilUploaded(_ library: PhotoLibrary) async throws -> (StorageStatus.Result, Double) {
        let start = ContinuousClock.now
        while true {
            let status = try await library.catalog.ask(StorageStatus()).result
            if status.waitingCount == 0, status.localBytes <= budget {
                return (status, (ContinuousClock.now - start) / .seconds(1))
            }
            guard ContinuousClock.now < start + .seconds(1800) else {
                throw FixtureError(description: "\(status.waitingCount) wait, \(status.localBytes) bytes are here")
            }
            try await Task.sleep(for: .milliseconds(200))
        }
    }

    /// Requests all thumbnails without network access once they are rendered in advance.
    private static func requestAllThumbnails(_ library: PhotoLibrary, _ services: SafelightFixture, _ store: S3Server)
        async throws
    {
        let start = ContinuousClock.now
        let head = try await library.currentToken().token.sequence
        var metrics: JSON?
        while metrics?["preparing"]?.intValue != 0 || metrics?["sequence"]?.intValue != head {
            metrics = try await library.thumbnailer.metrics()["newAssets"]
            guard ContinuousClock.now < start + .seconds(1800) else {
                throw FixtureError(description: "not all thumbnails are made: \(metrics ?? .null)")
            }
            try await Task.sleep(for: .milliseconds(200))
        }
        let prepared = (ContinuousClock.now - start) / .seconds(1)
        // Files that were downloaded for the thumbnails are evicted again, with a request to the store for each.
        _ = try await secondsUntilUploaded(library)
        let before = store.requests.count
        let all = try await countThumbnails(library)
        let requests = store.requests.dropFirst(before)
        TestPaths.report(
            "thumbnails: all made \(Int(prepared)) s after the uploads; "
                + "\(all) of \(count) with \(requests.count) requests"
        )
        #expect(all == count)
        #expect(requests.isEmpty, "\(requests.first ?? "")")
    }

    /// Returns the number of assets whose thumbnail was delivered; the originals of all others must be only in the
    /// store.
    private static func countThumbnails(_ library: PhotoLibrary) async throws -> Int {
        var delivered = 0
        var page = FetchAssets(fetch: FetchDescription(.assets), count: 500)
        while true {
            let result = try await library.catalog.ask(page).result
            page.token = result.token
            page.from += result.assets.count
            for asset in result.assets {
                let request = ImageRequest(
                    asset: asset.id,
                    targetSize: size,
                    deliveryMode: .highQualityFormat
                )
                do {
                    _ = try await library.thumbnailer.ask(request)
                    delivered += 1
                } catch {
                    #expect("\(error)".contains("network_access_required"), "\(error)")
                }
            }
            if result.assets.isEmpty || page.from >= result.count { return delivered }
        }
    }
}
