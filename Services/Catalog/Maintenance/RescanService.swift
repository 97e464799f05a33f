import Contracts
import Hosting
import JSONValue
import Messaging
import Storage
import Synchronization

/// Implements `library.rescan`: compares the referenced files with the disk, one scan at a time.
final class RescanService: Sendable {
    let resources: ResourceStore
    let blockingIO: BlockingIOExecutor
    /// The configured folders, whose files may be referenced.
    let roots: [String]
    let maxBytes: Int64
    /// Microseconds since 1970.
    let now: @Sendable () -> Int64
    private let isBusy = Atomic<Bool>(false)

    init(
        resources: ResourceStore,
        blockingIO: BlockingIOExecutor,
        roots: [String],
        maxBytes: Int64,
        now: @escaping @Sendable () -> Int64
    ) {
        self.resources = resources
        self.blockingIO = blockingIO
        self.roots = roots
        self.maxBytes = maxBytes
        self.now = now
    }

    func rescan(
        _ request: RescanLibrary,
        _ context: RequestContext
    ) async throws -> RescanLibrary.Result {
        guard context.identity.hasPrefix("uid:") else {
            throw MaintenanceError.rescanOverNetwork
        }
        let folders = try folders(request.root)
        guard isBusy.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            throw MaintenanceError.rescanRunning
        }
        defer { isBusy.store(false, ordering: .relaxed) }
        // Only the newest progress report matters to a client that reads slowly.
        let (reports, report) = AsyncStream.makeStream(of: JSONObject.self, bufferingPolicy: .bufferingNewest(1))
        async let result = scan(folders, report)
        for await progress in reports { try await context.notifier.notify(BackupLibrary.notification, progress) }
        return try await result
    }

    private func scan(
        _ folders: [String],
        _ report: AsyncStream<JSONObject>.Continuation
    ) async throws -> RescanLibrary.Result {
        defer { report.finish() }
        let isStopped = StopFlag()
        let (resources, maxBytes, now) = (resources, maxBytes, now())
        return try await withTaskCancellationHandler {
            try await blockingIO.run(.upkeep) {
                // A root that is unavailable is reported in the result and is not an error.
                let reachable = folders.filter { (try? PathAllowlist(roots: [$0])) != nil }
                let allowlist = try PathAllowlist(roots: reachable)
                var scan = ReferenceScan(
                    resources: resources,
                    allowlist: allowlist,
                    maxBytes: maxBytes,
                    now: now,
                    isStopped: { isStopped.isRequested },
                    progress: { report.yield(["done": JSON($0), "total": JSON($1)]) }
                )
                try scan.run(folders)
                return scan.result
            }
        } onCancel: {
            isStopped.request()
        }
    }

    /// Returns the folders to scan: all configured ones, or the requested one, which must be in one of these.
    private func folders(_ requested: String?) throws -> [String] {
        let configured = roots.map { root in root.count > 1 && root.hasSuffix("/") ? String(root.dropLast()) : root }
        guard !configured.isEmpty else { throw MaintenanceError.noImportFolder }
        guard var folder = requested else { return configured }
        while folder.count > 1, folder.hasSuffix("/") { folder.removeLast() }
        guard !folder.split(separator: "/").contains(".."),
            configured.contains(where: { ReferenceScan.isBelow(folder, $0) })
        else {
            throw MaintenanceError.notBelowImportFolder(folder, allowed: configured)
        }
        return [folder]
    }

    private final class StopFlag: Sendable {
        private let state = Mutex(false)
        var isRequested: Bool { state.withLock { $0 } }
        func request() { state.withLock { $0 = true } }
    }
}
