import Logging
import Dispatch
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// The change observers of a library, and the task that reads the change feed for them.
///
/// The feed is read while there is an observer. Observers are called one after the other on one queue, each transaction
/// after the one before; while they run nothing more is read, and what they miss is read from the history (S-63, P-07).
final class ChangeObservers: Sendable {
    private struct Reference: Sendable {
        weak let observer: (any PHPhotoLibraryChangeObserver)?
    }

    private struct State {
        var observers: [Reference] = []
        var task: Task<Void, Never>?
    }

    private let connection: LibraryConnection
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "photokit.changes")

    init(_ connection: LibraryConnection) { self.connection = connection }

    /// Adds an observer, which is not retained. Changes after this call are observed.
    func register(_ observer: any PHPhotoLibraryChangeObserver) {
        // The token is read before the first observer is added, so that no change after the call is missed.
        let needsStart = state.withLock { $0.task == nil }
        let token = needsStart ? start() : nil
        state.withLock { state in
            state.observers.removeAll { $0.observer == nil || $0.observer === observer }
            state.observers.append(Reference(observer: observer))
            guard needsStart, state.task == nil else { return }
            state.task = connection.start { [weak self] in await self?.follow(token) }
        }
    }

    func unregister(_ observer: any PHPhotoLibraryChangeObserver) {
        state.withLock { state in
            state.observers.removeAll { $0.observer == nil || $0.observer === observer }
            guard state.observers.isEmpty else { return }
            state.task?.cancel()
            state.task = nil
        }
    }

    func stop() {
        state.withLock { state in
            state.observers = []
            state.task?.cancel()
            state.task = nil
        }
    }

    /// Returns the newest token; nil if it cannot be read, in which case only changes are observed that are published after
    /// the feed is connected.
    private func start() -> ChangeToken? {
        try? connection.wait { [connection] () async throws(RPCError) in
            try await connection.catalog(CurrentToken()).token
        }
    }

    private func follow(_ token: ChangeToken?) async {
        var token = token
        while !Task.isCancelled {
            do throws(RPCError) {
                for try await event in connection.client.changes(since: token) {
                    token = event.token
                    await deliver(event)
                }
                return
            } catch {
                connection.logger.error(
                    "the change feed ended, observers are not notified any more",
                    metadata: ["error": "\(error)"]
                )
                return
            }
        }
    }

    private func deliver(_ event: FeedEvent) async {
        let change: PHChange
        switch event {
        case .change(let record):
            guard !record.touchedIDs.isEmpty, connection.interests.isAffected(by: record) else { return }
            change = PHChange(record.token, record: record, connection)
        case .expired(let head, _): change = PHChange(head, record: nil, connection)
        case .caughtUp: return
        }
        let observers = state.withLock { $0.observers.compactMap(\.observer) }
        guard !observers.isEmpty else { return }
        await withCheckedContinuation { continuation in
            queue.async {
                for observer in observers { observer.photoLibraryDidChange(change) }
                continuation.resume()
            }
        }
    }
}
