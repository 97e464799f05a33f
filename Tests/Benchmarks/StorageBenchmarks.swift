import Basics
import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport

/// Uploads and downloads of originals, against `aws s3 cp --recursive` of the same files.
///
/// Both use the same server on this machine: `s3files.py`, which stores objects as files and verifies nothing, so that
/// it is not the bottleneck. Times include the start of the processes. The catalog does more work: it verifies the
/// SHA-256 of each file while it is sent, in the store and after a download, and it syncs the downloaded files.
enum StorageBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "storage") else { return }
        guard let peer = S3Peer() else {
            return bench.addGap("storage", "aws is not installed (make bench installs it)")
        }
        let sets = [
            TransferSet(name: "large", count: bench.amount(4, quick: 1), bytes: bench.amount(128, quick: 65) << 20),
            TransferSet(name: "small", count: bench.amount(1000, quick: 40), bytes: 100 << 10),
        ]
        for set in sets where names(set).contains(where: { bench.includes($0) }) {
            try await measure(bench, set, peer)
        }
    }

    private static func names(_ set: TransferSet) -> [String] {
        ["upload", "download"].flatMap { ["storage.\($0).\(set.name)", "storage.memory.\($0).\(set.name)"] }
    }

    private static func measure(_ bench: BenchmarkContext, _ set: TransferSet, _ peer: S3Peer) async throws {
        let source = try bench.paths.folder("storage-\(set.name)")
        try set.write(to: source)
        let services = try ServicesFixture(bench.paths, "storage-\(set.name)")
        try await services.start("catalog")
        let safelight = bench.paths.program("safelight")
        try await runProgram(safelight, ["import", source, "--json", "--run", services.run])
        await services.stop("catalog")
        // The memory of an idle catalog after its start.
        try await services.start("catalog")
        let idle = ProcessTable.residentBytes(services.process("catalog"))
        await services.stop("catalog")
        let catalog = TransferCatalog(services: services, set: set, idleBytes: idle)
        try await bench.compare(
            comparisons("upload", set, "its SHA-256 confirmed by the store"),
            ours: { try await catalog.upload(to: S3Server(.files)) },
            peer: {
                let store = try S3Server(.files)
                return try await peer.copy(set, source, "s3://photos/peer", store)
            }
        )
        let store = try S3Server(.files)
        _ = try await catalog.upload(to: store)
        try await bench.compare(
            comparisons("download", set, "its SHA-256 compared, synced"),
            ours: { try await catalog.download(from: store) },
            peer: {
                let target = bench.paths.scratch.file("storage-peer")
                defer { try? FileManager.default.removeItem(atPath: target) }
                return try await peer.copy(set, "s3://photos/\(catalog.prefix)", target, store)
            }
        )
        await services.stop()
        try FileManager.default.removeItem(atPath: source)
    }

    private static func comparisons(_ direction: String, _ set: TransferSet, _ verification: String) -> [Comparison] {
        let peer = "aws s3 cp --recursive, from its start"
        return [
            Comparison(
                name: "storage.\(direction).\(set.name)",
                ours: "the catalog's \(direction), from its start, \(set.text), each with \(verification)",
                peer: peer,
                unit: "MB/s",
                aim: .ratio(0.9)
            ),
            Comparison(
                name: "storage.memory.\(direction).\(set.name)",
                ours: "growth of the catalog's resident memory, at its peak",
                peer: "the peak of aws in all",
                unit: "MiB",
                smallerIsBetter: true,
                aim: .figure(64)
            ),
        ]
    }
}

/// Files of one size: a small image, then random bytes.
struct TransferSet {
    let name: String
    let count: Int
    let bytes: Int

    var text: String { "\(count) files of \(bytes >> 20 > 0 ? "\(bytes >> 20) MiB" : "\(bytes >> 10) KiB")" }
    var totalBytes: Int64 { Int64(count) * Int64(bytes) }

    func write(to folder: String) throws {
        let random = try FileHandle(forReadingFrom: URL(fileURLWithPath: "/dev/urandom"))
        defer { try? random.close() }
        for index in 0..<count {
            let path = "\(folder)/\(index).jpg"
            try Data(TestImages.jpeg(width: 64, height: 48, seed: UInt64(index))).write(to: URL(fileURLWithPath: path))
            let file = try FileHandle(forWritingTo: URL(fileURLWithPath: path))
            defer { try? file.close() }
            var remaining = bytes - Int(try file.seekToEnd())
            while remaining > 0 {
                guard let piece = try random.read(upToCount: min(remaining, 1 << 20)) else { break }
                try file.write(contentsOf: piece)
                remaining -= piece.count
            }
        }
    }
}

/// A catalog whose library has the files of a set.
private final class TransferCatalog {
    private let services: ServicesFixture
    private let set: TransferSet
    private let idleBytes: Int
    private var uploadCount = 0

    init(services: ServicesFixture, set: TransferSet, idleBytes: Int) {
        (self.services, self.set, self.idleBytes) = (services, set, idleBytes)
    }

    /// The prefix of the latest uploads. A library uploads everything again if the location of its objects has changed.
    var prefix: String { "library-\(uploadCount)" }

    private func start(_ store: S3Server) async throws {
        let bucket = ["SAFELIGHT_OBJECT_STORE": "s3://photos/\(prefix)"]
        try await services.start("catalog", environment: try store.environment.merging(bucket) { $1 })
    }

    /// Uploads all files, and returns the rate in MB/s and the growth of the catalog's memory in MiB.
    func upload(to store: S3Server) async throws -> [Double] {
        uploadCount += 1
        let time = try await seconds {
            try await start(store)
            try await waitUntilUploaded()
        }
        return try await finish(time, since: idleBytes)
    }

    private func waitUntilUploaded() async throws {
        while true {
            let status = try await services.client.catalog.ask(StorageStatus()).result
            if let problem = status.problem { throw BenchmarkError("uploads: \(problem) \(status.message ?? "")") }
            if status.uploadedBytes >= set.totalBytes, status.waitingCount == 0 { return }
            await TaskDelay.pollInterval(.milliseconds(20))
        }
    }

    /// Releases and downloads all files, and returns the rate of the downloads in MB/s and the growth of the catalog's
    /// memory in MiB.
    func download(from store: S3Server) async throws -> [Double] {
        try await start(store)
        let released = try await setKept(false)
        await services.stop("catalog")
        guard released.count == set.count else {
            throw BenchmarkError("\(released.count) of \(set.count) files were released")
        }
        var before = 0
        var downloaded = KeepInStorage.Result()
        let time = try await seconds {
            try await start(store)
            before = ProcessTable.residentBytes(services.process("catalog"))
            try ProcessTable.resetPeak(services.process("catalog"))
            downloaded = try await setKept(true)
        }
        guard downloaded.bytes == set.totalBytes else {
            throw BenchmarkError("\(downloaded.bytes) of \(set.totalBytes) bytes were downloaded")
        }
        return try await finish(time, since: before)
    }

    private func setKept(_ isKept: Bool) async throws -> KeepInStorage.Result {
        let request = KeepInStorage(fetch: FetchDescription(.assets), isKept: isKept)
        return try await services.client.catalog.ask(request, deadline: .seconds(600)).result
    }

    /// Stops the catalog, and returns the rate in MB/s and the growth of its memory in MiB.
    private func finish(_ time: Double, since before: Int) async throws -> [Double] {
        let peak = ProcessTable.peakBytes(services.process("catalog"))
        await services.stop("catalog")
        return [Double(set.totalBytes) / 1e6 / time, Double(max(0, peak - before)) / 1_048_576]
    }
}

/// The program `aws` of the Python package awscli.
private struct S3Peer {
    private let program: String
    private let packages: String?

    /// Returns nil if the program is not installed.
    init?() {
        let packages = TestPaths.package + "/.build/awscli"
        if FileManager.default.isExecutableFile(atPath: packages + "/bin/aws") {
            (program, self.packages) = (packages + "/bin/aws", packages)
        } else if let program = TestPaths.program("aws") {
            (self.program, self.packages) = (program, nil)
        } else {
            return nil
        }
    }

    /// Copies a folder to or from the store, and returns the rate in MB/s and the peak memory of `aws` in MiB.
    func copy(_ set: TransferSet, _ source: String, _ target: String, _ store: S3Server) async throws -> [Double] {
        var environment = try store.environment
        environment["AWS_DEFAULT_REGION"] = "us-east-1"
        environment["AWS_CONFIG_FILE"] = "/dev/null"
        environment["AWS_EC2_METADATA_DISABLED"] = "true"
        // Without the packages of moto, which needs another version of botocore.
        environment["PYTHONPATH"] = packages ?? ""
        let options = ["--endpoint-url", try store.endpoint, "s3", "cp", "--recursive", "--only-show-errors"]
        var peak = 0
        let time = try await seconds {
            let running = try RunningProgram(program, options + [source, target], environment: environment)
            while running.isRunning {
                peak = max(peak, ProcessTable.peakBytes(running.processIdentifier))
                await TaskDelay.pollInterval(.milliseconds(20))
            }
            guard running.wait() == 0 else { throw BenchmarkError("aws: \(running.errorText.suffix(500))") }
        }
        return [Double(set.totalBytes) / 1e6 / time, Double(peak) / 1_048_576]
    }
}
