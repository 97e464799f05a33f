import Basics
import Logging
import Dispatch
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// The change observers of a library, and the task that reads the change feed for them.
///
/// The feed is read while there is an observer. Observers are called one after the other on one queue, for the
/// transactions in their order. While an observer runs, the feed is not read; transactions that are missed meanwhile
/// are read from the history (S-63, P-07).
final class ChangeObservers: Sendable {
    private struct State {
        var list = ObserverList<any PHPhotoLibraryChangeObserver>()
        var task: Task<Void, Never>?
        /// The number of the current task. Earlier tasks notify no observer: they may read earlier changes.
        var run = 0
    }

    private let connection: LibraryConnection
    private let state = Mutex(State())
    private let queue = DispatchQueue(label: "photokit.changes")

    init(_ connection: LibraryConnection) { self.connection = connection }

    /// Adds an observer, which is not retained. Changes after this call are observed.
    func register(_ observer: any PHPhotoLibraryChangeObserver) {
        // The token is read before the first observer is added, so that no change after the call is missed.
        let token = state.withLock { $0.task == nil } ? newestToken() : nil
        let retained = state.withLock { state in
            let retained = state.list.add(observer)
            if state.task == nil {
                state.run += 1
                state.task = connection.start { [weak self, run = state.run] in await self?.follow(token, run) }
            }
            return retained
        }
        withExtendedLifetime(retained) {}
    }

    func unregister(_ observer: any PHPhotoLibraryChangeObserver) {
        let retained = state.withLock { state in
            let retained = state.list.remove(observer)
            if state.list.isEmpty {
                state.task?.cancel()
                state.task = nil
                state.run += 1
            }
            return retained
        }
        withExtendedLifetime(retained) {}
    }

    func stop() {
        state.withLock { state in
            state.list.removeAll()
            state.task?.cancel()
            state.task = nil
            state.run += 1
        }
    }

    /// Returns the newest token; nil if it cannot be read. The observers are then notified as soon as the feed starts,
    /// because the library may have changed.
    private func newestToken() -> ChangeToken? {
        try? connection.wait { [connection] () async throws(RPCError) in
            try await connection.askCatalog(CurrentToken()).token
        }
    }

    /// Reads the feed until it is cancelled. After an error, such as access that is not granted yet, it starts again.
    private func follow(_ token: ChangeToken?, _ run: Int) async {
        var token = token
        var failure: ErrorCode?
        while !Task.isCancelled {
            do throws(RPCError) {
                for try await event in connection.client.changes(since: token) {
                    // Changes between the call of `register` and the start of the feed are unknown.
                    let isFirst = token == nil
                    token = event.token
                    failure = nil
                    await deliver(isFirst ? .expired(head: event.token, oldest: event.token) : event, run)
                }
                return
            } catch {
                if failure != error.errorCode {
                    connection.logger.warning(
                        "the change feed cannot be read; observers are notified when it can be read again",
                        metadata: ["error": "\(error)"]
                    )
                }
                failure = error.errorCode
                await TaskDelay.retryDelay(.seconds(1))
            }
        }
    }

    private func deliver(_ event: FeedEvent, _ run: Int) async {
        let change: PHChange
        switch event {
        case .change(let record):
            guard !record.touchedIDs.isEmpty, connection.interests.update(with: record) else { return }
            change = PHChange(record.token, record: record, connection)
        case .expired(let head, _): change = PHChange(head, record: nil, connection)
        case .caughtUp: return
        }
        await withCheckedContinuation { continuation in
            queue.async { [self] in
                let observers = state.withLock { $0.run == run ? $0.list.observers : [] }
                for observer in observers where isRegistered(observer, run) { observer.photoLibraryDidChange(change) }
                continuation.resume()
            }
        }
    }

    private func isRegistered(_ observer: any PHPhotoLibraryChangeObserver, _ run: Int) -> Bool {
        state.withLock { $0.run == run && $0.list.contains(observer) }
    }
}
