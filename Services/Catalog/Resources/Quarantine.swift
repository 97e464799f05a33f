import Basics
import Contracts
import PhotoModel
import Storage
import Synchronization

/// The stored bytes that are no longer opened because they crash or hang workers. Stored in the database and cached in
/// memory, because every page of assets reads it.
final class Quarantine: Sendable {
    /// The number of failures at which bytes are quarantined. One is tolerated: the machine may have been out of
    /// memory.
    static let failures = 2
    /// The maximum number of entries. Beyond it the oldest is deleted, and its bytes have to fail again.
    static let maxCount = 10_000

    private let store: LibraryStore
    private let services: ServiceIdentities
    private let now: @Sendable () -> Int64
    private let cache: Mutex<Cache>

    private struct Cache {
        var entries: [String: QuarantinedResource]
        /// The number of changes of this catalog.
        var changes = 0

        init(_ entries: [QuarantinedResource]) { self.entries = Self.byDigest(entries) }

        static func byDigest(_ entries: [QuarantinedResource]) -> [String: QuarantinedResource] {
            Dictionary(entries.map { ($0.digest, $0) }, uniquingKeysWith: { first, _ in first })
        }
    }

    init(store: LibraryStore, services: ServiceIdentities, now: @escaping @Sendable () -> Int64) async throws {
        self.store = store
        self.services = services
        self.now = now
        let entries = try await store.read { try $0.quarantine.entries(atLeast: Self.failures) }
        cache = Mutex(Cache(entries))
    }

    var count: Int { cache.withLock { $0.entries.count } }

    /// Returns the entry of bytes that are not opened; nil if they are not quarantined.
    func entry(_ digest: String) -> QuarantinedResource? { cache.withLock { $0.entries[digest] } }

    /// Returns the entries for all resources of the assets, each once.
    func entries(of assets: [Asset]) -> [QuarantinedResource] {
        cache.withLock { cache in
            guard !cache.entries.isEmpty else { return [] }
            var seen: Set<String> = []
            return assets.flatMap(\.resources).compactMap { resource in
                guard let entry = cache.entries[resource.digest], seen.insert(resource.digest).inserted else {
                    return nil
                }
                return entry
            }
        }
    }

    /// Implements `quarantine.report`, for services only.
    func report(_ fault: ReportWorkerFault, from identity: String) async throws -> ReportWorkerFault.Result {
        try services.check(identity, for: ReportWorkerFault.method)
        return try await report(fault)
    }

    /// Counts a failure, and quarantines the bytes after ``failures`` of them.
    func report(_ fault: ReportWorkerFault) async throws -> ReportWorkerFault.Result {
        guard ResourceDigest(fault.digest) != nil else {
            throw ResourceError.malformedDigest
        }
        let date = now()
        return try await store.changeQuarantine { [self] quarantine in
            let entry = try quarantine.add(fault, date: date, maxEntries: Self.maxCount)
            let isQuarantined = entry.failures >= Self.failures
            try load(quarantine)
            return ReportWorkerFault.Result(failures: entry.failures, isQuarantined: isQuarantined)
        }
    }

    func list(_ request: ListQuarantine) async throws -> ListQuarantine.Result {
        try await store.read { reader in
            let all = try reader.quarantine.entries(atLeast: Self.failures)
            let from = min(request.from, all.count)
            let page = try all[from..<(from + min(request.count, all.count - from))].map { entry in
                var entry = entry
                entry.assets = try reader.quarantine.assets(with: entry.digest)
                return entry
            }
            return ListQuarantine.Result(count: all.count, resources: page)
        }
    }

    /// Implements `quarantine.lift`: deletes the failures of some bytes, so that they are opened again.
    func lift(_ request: LiftQuarantine) async throws -> LiftQuarantine.Result {
        try await store.changeQuarantine { [self] quarantine in
            let before = count
            try quarantine.remove(request.digest)
            try load(quarantine)
            return LiftQuarantine.Result(lifted: before - count)
        }
    }

    /// Reloads the cache; called on the writer's thread, so that the cache changes in the order of the transactions.
    private func load(_ quarantine: QuarantineStore) throws {
        let entries = try quarantine.entries(atLeast: Self.failures)
        cache.withLock { cache in
            cache.entries = Cache.byDigest(entries)
            cache.changes += 1
        }
    }

    // MARK: Several catalogs

    /// Reads the entries again, once a second while another catalog writes the library: no change record mentions them.
    func follow(_ election: WriterElection) async {
        // The epoch of this catalog as the writer in which the entries were last read.
        var readEpoch: Int64?
        for await _ in TaskDelay.ticks(every: .seconds(1)) {
            let (isStandby, epoch) = (election.refusal != nil, election.epoch)
            // They are read once more after each takeover, because the previous writer may have changed them after the
            // last read.
            guard isStandby || readEpoch != epoch else { continue }
            // A database that does not answer is reported elsewhere.
            if (try? await refresh()) != nil { readEpoch = isStandby ? nil : epoch }
        }
    }

    /// Reads the entries again.
    func refresh() async throws {
        let changes = cache.withLock { $0.changes }
        let entries = try await store.read { try $0.quarantine.entries(atLeast: Self.failures) }
        // If this catalog has made a change meanwhile, that has loaded newer entries.
        cache.withLock { cache in
            if cache.changes == changes { cache.entries = Cache.byDigest(entries) }
        }
    }
}
