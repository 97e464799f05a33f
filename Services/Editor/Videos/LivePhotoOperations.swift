import Basics
import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// The running saves and previews of Live Photos, at most one for each client and Live Photo: the next one cancels it,
/// as with `PHLivePhotoEditingContext` (T-48).
final class LivePhotoOperations: Sendable {
    private struct Key: Hashable {
        let asset: ObjectID
        let identity: String
    }

    private let running = Mutex<[Key: CancellationSource]>([:])

    /// Cancels the operation of the client that is running, and runs another.
    ///
    /// - Throws: the error of `body`; `user_cancelled` if a later operation cancelled this one
    func run<Value: Sendable>(
        _ asset: ObjectID,
        for identity: String,
        _ body: @escaping @Sendable () async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let key = Key(asset: asset, identity: identity)
        let cancellation = CancellationSource()
        running.withLock { $0.updateValue(cancellation, forKey: key) }?.cancel()
        let outcome = await cancellation.run { () -> Result<Value, RPCError> in
            do throws(RPCError) { return .success(try await body()) } catch { return .failure(error) }
        }
        running.withLock { if $0[key] === cancellation { $0[key] = nil } }
        if cancellation.isCancelled, case .failure(let error) = outcome, error.errorCode == .userCancelled {
            throw .replacedEdit(of: asset)
        }
        return try outcome.get()
    }
}
