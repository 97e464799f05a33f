import Contracts
import JSONValue
import Messaging
import PhotoModel
import Storage
import Synchronization

/// Which stored bytes are opened no more (DESIGN 4.4): kept in the database, and at hand in memory, because every page of
/// assets asks.
final class Quarantine: Sendable {
    /// Harm that is forgiven: a machine may have been out of memory once.
    static let failures = 2
    /// Above it the oldest entry is forgotten, and would have to do harm again.
    static let most = 10_000

    private let store: LibraryStore
    private let now: @Sendable () -> Int64
    private let setAside: Mutex<[String: QuarantinedResource]>

    init(store: LibraryStore, now: @escaping @Sendable () -> Int64) async throws {
        self.store = store
        self.now = now
        let entries = try await store.read { try $0.quarantine.entries(atLeast: Self.failures) }
        setAside = Mutex(Dictionary(entries.map { ($0.digest, $0) }, uniquingKeysWith: { first, _ in first }))
    }

    var count: Int { setAside.withLock { $0.count } }

    /// Why bytes are opened no more; nil where they may be.
    func entry(_ digest: String) -> QuarantinedResource? { setAside.withLock { $0[digest] } }

    /// The same for all resources of assets, each once.
    func entries(of assets: [Asset]) -> [QuarantinedResource] {
        setAside.withLock { setAside in
            guard !setAside.isEmpty else { return [] }
            var seen: Set<String> = []
            return assets.flatMap(\.resources).compactMap { resource in
                guard let entry = setAside[resource.digest], seen.insert(resource.digest).inserted else { return nil }
                return entry
            }
        }
    }

    /// Counts harm, and sets the bytes aside when there was enough.
    func report(_ harm: ReportHarm) async throws -> ReportHarm.Result {
        guard ResourceDigest(harm.digest) != nil else {
            throw Refusal.invalidParams.error("a digest has 64 hexadecimal digits", ["parameter": "digest"])
        }
        let date = now()
        return try await store.changeQuarantine { [self] quarantine in
            let entry = try quarantine.add(harm, date: date, most: Self.most)
            let isSetAside = entry.failures >= Self.failures
            try load(quarantine)
            return ReportHarm.Result(failures: entry.failures, isSetAside: isSetAside)
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

    /// Forgets harm, so that the bytes are opened again.
    func lift(_ request: LiftQuarantine) async throws -> LiftQuarantine.Result {
        try await store.changeQuarantine { [self] quarantine in
            let before = count
            try quarantine.remove(request.digest)
            try load(quarantine)
            return LiftQuarantine.Result(lifted: before - count)
        }
    }

    /// On the thread that writes, whose order is that of the changes.
    private func load(_ quarantine: QuarantineStore) throws {
        let entries = try quarantine.entries(atLeast: Self.failures)
        setAside.withLock {
            $0 = Dictionary(entries.map { ($0.digest, $0) }, uniquingKeysWith: { first, _ in first })
        }
    }
}
