import Contracts
import Hosting
import JSONValue
import Messaging
import Storage
import Synchronization

/// `library.rescan`: compares the files that the library references with the disk, one search at a time.
final class RescanDesk: Sendable {
    let resources: ResourceStore
    let crew: FileCrew
    /// Folders that are configured; files below them may be referenced.
    let roots: [String]
    let maxBytes: Int64
    /// Microseconds since 1970.
    let now: @Sendable () -> Int64
    private let isBusy = Atomic<Bool>(false)

    init(
        resources: ResourceStore,
        crew: FileCrew,
        roots: [String],
        maxBytes: Int64,
        now: @escaping @Sendable () -> Int64
    ) {
        self.resources = resources
        self.crew = crew
        self.roots = roots
        self.maxBytes = maxBytes
        self.now = now
    }

    func rescan(
        _ request: RescanLibrary,
        _ incoming: IncomingRequest,
        _ notifier: Notifier
    ) async throws -> RescanLibrary.Result {
        guard incoming.identity.hasPrefix("uid:") else {
            throw Refusal.accessDenied.error("paths are accepted over ipc only")
        }
        let folders = try folders(request.root)
        guard isBusy.compareExchange(expected: false, desired: true, ordering: .relaxed).exchanged else {
            throw Refusal.busy.error("another rescan is under way; ask again when it is done")
        }
        defer { isBusy.store(false, ordering: .relaxed) }
        // What the client has not taken yet is out of date when the next one comes.
        let (steps, report) = AsyncStream.makeStream(of: JSONObject.self, bufferingPolicy: .bufferingNewest(1))
        async let result = scan(folders, report)
        for await step in steps { try await notifier.notify(BackupLibrary.notification, step) }
        return try await result
    }

    private func scan(
        _ folders: [String],
        _ report: AsyncStream<JSONObject>.Continuation
    ) async throws -> RescanLibrary.Result {
        defer { report.finish() }
        let isStopped = Stop()
        let (resources, maxBytes, now) = (resources, maxBytes, now())
        return try await withTaskCancellationHandler {
            try await crew.run(.upkeep) {
                // A root that is not there now is reported, not refused.
                let reachable = folders.filter { (try? FileFence(roots: [$0])) != nil }
                let fence = try FileFence(roots: reachable)
                var scan = ReferenceScan(
                    resources: resources,
                    fence: fence,
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

    private func folders(_ named: String?) throws -> [String] {
        let configured = roots.map { root in root.count > 1 && root.hasSuffix("/") ? String(root.dropLast()) : root }
        guard !configured.isEmpty else { throw Self.noRoots }
        guard var folder = named else { return configured }
        while folder.count > 1, folder.hasSuffix("/") { folder.removeLast() }
        guard !folder.split(separator: "/").contains(".."),
            configured.contains(where: { ReferenceScan.isBelow(folder, $0) })
        else {
            throw Refusal.accessDenied.error(
                "\(folder) is not below a folder that may be imported from",
                ["path": .string(folder), "allowed": JSON(configured)]
            )
        }
        return [folder]
    }

    /// Files are referenced only below folders that the catalog's owner named.
    static let noRoots = Refusal.accessDenied.error(
        "no folder is configured whose files may be referenced; start the catalog with --import-root FOLDER, or "
            + "SAFELIGHT_IMPORT_ROOTS for all services"
    )

    private final class Stop: Sendable {
        private let state = Mutex(false)
        var isRequested: Bool { state.withLock { $0 } }
        func request() { state.withLock { $0 = true } }
    }
}
