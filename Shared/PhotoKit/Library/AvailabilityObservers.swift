import Basics
import Contracts
import Dispatch
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Synchronization

/// The availability observers of a library, and the task that watches the connection to the catalog for them.
final class AvailabilityObservers: Sendable {
    private struct State {
        var list = ObserverList<any PHPhotoLibraryAvailabilityObserver>()
        var task: Task<Void, Never>?
        var reason: PHPhotosError?
        /// The date of the last status over this connection; nil if there was none.
        var lastStatus: Int64?
    }

    private let connection: LibraryConnection
    private let state = Mutex(State())

    init(_ connection: LibraryConnection) { self.connection = connection }

    var reason: PHPhotosError? { state.withLock { $0.reason } }

    func register(_ observer: any PHPhotoLibraryAvailabilityObserver, of library: PHPhotoLibrary) {
        let retained = state.withLock { state in
            let retained = state.list.add(observer)
            if state.task == nil {
                state.task = connection.start { [weak self, weak library] in
                    while !Task.isCancelled, let self, let library { await self.watch(library) }
                }
            }
            return retained
        }
        withExtendedLifetime(retained) {}
    }

    func unregister(_ observer: any PHPhotoLibraryAvailabilityObserver) {
        let retained = state.withLock { state in
            let retained = state.list.remove(observer)
            if state.list.isEmpty {
                state.task?.cancel()
                state.task = nil
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
        }
    }

    /// Requests the status of the library, and waits until it differs from the last one. The open request also detects
    /// the loss of the connection.
    private func watch(_ library: PHPhotoLibrary) async {
        do throws(RPCError) {
            let request = LibraryStatus(after: state.withLock { $0.lastStatus })
            let status = try await connection.client.catalog.ask(request, deadline: .seconds(60)).result
            let problem = status.problems.first { !$0.state.isReadable }
            state.withLock { $0.lastStatus = status.since }
            set(problem.map { PHPhotosError($0.rpcError) }, library)
        } catch {
            if Task.isCancelled { return }
            state.withLock { $0.lastStatus = nil }
            guard error.isTransient || error.errorCode == .libraryOffline else {
                // Without access, the state of the library is unknown.
                await TaskDelay.retryDelay(.seconds(1))
                return
            }
            set(PHPhotosError(.libraryOffline, "the catalog cannot be reached: \(error.message)"), library)
            await TaskDelay.retryDelay(.milliseconds(100))
        }
    }

    private func isRegistered(_ observer: any PHPhotoLibraryAvailabilityObserver) -> Bool {
        state.withLock { $0.list.contains(observer) }
    }

    private func set(_ reason: PHPhotosError?, _ library: PHPhotoLibrary) {
        let observers = state.withLock { state -> [any PHPhotoLibraryAvailabilityObserver] in
            defer { state.reason = reason }
            // Only changes are reported. If the library is available at first, nothing is reported.
            guard (state.reason == nil) != (reason == nil) else { return [] }
            return state.list.observers
        }
        guard !observers.isEmpty else { return }
        connection.callbacks.async { [self] in
            for observer in observers where isRegistered(observer) {
                if reason == nil {
                    observer.photoLibraryDidBecomeAvailable(library)
                } else {
                    observer.photoLibraryDidBecomeUnavailable(library)
                }
            }
        }
    }
}
