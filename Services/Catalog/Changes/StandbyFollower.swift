import JSONValue
import Logging
import PhotoModel
import ServiceLifecycle
import Storage

/// Keeps the state in the memory of a catalog up to date while another one writes: the newest records, the grants, the
/// table of last changes, and the quarantine.
struct StandbyFollower: Sendable {
    let store: LibraryStore
    let tail: ChangeLogTail
    let registry: GrantRegistry
    let lastChanges: LastChangeFile
    let availability: LibraryAvailability
    let logger: Logger
    /// See ``WriterElection/Follower/newHistoryID``.
    let newHistoryID: @Sendable () -> String

    init(
        _ store: LibraryStore,
        _ tail: ChangeLogTail,
        _ registry: GrantRegistry,
        _ lastChanges: LastChangeFile,
        _ availability: LibraryAvailability,
        _ logger: Logger,
        _ newHistoryID: @escaping @Sendable () -> String
    ) {
        (self.store, self.tail, self.registry) = (store, tail, registry)
        (self.lastChanges, self.availability) = (lastChanges, availability)
        (self.logger, self.newHistoryID) = (logger, newHistoryID)
    }

    /// Holds the writer's lock, or follows the writer and waits for the lock, until the service stops.
    ///
    /// - Throws: an error if the catalog cannot continue, for example because the library began another history
    func run(_ quarantine: Quarantine) async throws {
        guard let election = store.election else { return }
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await quarantine.follow(election) }
            defer { group.cancelAll() }
            try await election.run(follower)
        }
    }

    private var follower: WriterElection.Follower {
        WriterElection.Follower(
            historyID: store.historyID,
            head: { tail.head },
            acknowledged: store.acknowledgedSequence,
            receive: { records, head in try receive(records, head) },
            changed: { report($0) },
            newHistoryID: newHistoryID
        )
    }

    private func report(_ role: WriterElection.Role) {
        availability.note(store.role)
        switch role {
        case .writer(let epoch): logger.notice("this catalog writes the library", metadata: ["epoch": "\(epoch)"])
        case .standby(let writer):
            logger.notice("this catalog is a standby and answers reads only", metadata: ["writer": "\(writer)"])
        }
    }

    /// Stores the newest sequence that clients of this catalog see. The next start thus detects if the database server
    /// has lost it.
    private func rememberHead(_ sequence: Int64) {
        do throws(StorageError) {
            try store.headFile.store(library: store.historyID, sequence: sequence, isDurable: false)
        } catch {
            logger.error("cannot write the head file", metadata: ["error": "\(error)"])
        }
    }

    private func receive(_ stored: [StoredRecord], _ head: Int64) throws {
        var changed: [(id: String, sequence: Int64)] = []
        var writes: [PerformedWrite] = []
        for stored in stored {
            let record = try ChangeRecord(json: JSON(parsing: stored.bytes))
            guard record.library == store.historyID else {
                throw StorageError.resourceChanged("the library began another history; start the catalog again")
            }
            changed += record.assets.map { ($0.id.text, record.sequence) }
            var performed = PerformedWrite()
            performed.record = CommittedRecord(
                sequence: stored.sequence,
                bytes: stored.bytes,
                insertsAssets: record.assets.contains { $0.before == nil }
            )
            performed.grant = record.grants.first?.after
            writes.append(performed)
        }
        try lastChanges.record(changed, head: head)
        // On the writing connection, so that a commit of this catalog that is in progress ends first.
        store.database.withWriter { _ in
            let new = writes.filter { ($0.record?.sequence ?? 0) > tail.head }
            for performed in new { registry.apply(performed) }
            store.database.noteCommitted(head)
            // A replica may still lack changes that this catalog had acknowledged before it started.
            rememberHead(max(head, tail.head, store.acknowledgedSequence))
            tail.append(new.compactMap(\.record), head: head)
        }
    }
}

/// A component that runs only in the catalog that writes the library: on a standby it begins after a takeover.
struct WriterComponent<Component: Service>: Service {
    let store: LibraryStore
    let component: Component

    func run() async throws {
        if let election = store.election {
            await cancelWhenGracefulShutdown { await election.waitUntilWriter() }
            guard election.refusal == nil else { return await gracefulShutdownOrCancellation() }
        }
        try await component.run()
    }

    /// Waits for the shutdown: a component that ended while the others run would end the service.
    private func gracefulShutdownOrCancellation() async { try? await gracefulShutdown() }
}
