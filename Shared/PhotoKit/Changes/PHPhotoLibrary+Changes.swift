import Logging
import Contracts
import Dispatch
import Glibc
import JSONValue

extension PHPhotoLibrary {
    /// Performs the requests of a block as one transaction: all or none, exactly once (S-71, S-73).
    ///
    /// The block runs on a queue of the library. The completion handler is called on the callback queue when the
    /// changes are committed or have failed; a fetch in the handler returns them. At exit the program waits for its
    /// changes, at most a minute.
    public func performChanges(
        _ changeBlock: @escaping @Sendable () -> Void,
        completionHandler: (@Sendable (_ success: Bool, _ error: (any Error)?) -> Void)? = nil
    ) {
        let isNested = ChangeRecorder.current != nil
        UnfinishedChanges.group.enter()
        Self.blocks.async { [connection] in
            let recorded: Result<[any RecordedChange], RPCError> = Result { () throws(RPCError) in
                guard !isNested else { throw ChangeRecorder.nested }
                return try ChangeRecorder.record(connection, changeBlock)
            }
            connection.start {
                var failure: PHPhotosError?
                do throws(RPCError) {
                    try await connection.perform(try recorded.get())
                } catch {
                    failure = PHPhotosError(error)
                }
                UnfinishedChanges.group.leave()
                guard let completionHandler else {
                    if let failure { connection.logger.warning("changes failed", metadata: ["error": "\(failure)"]) }
                    return
                }
                connection.callbacks.async { [failure] in completionHandler(failure == nil, failure) }
            }
        }
    }

    /// Performs the requests of a block as one transaction. The block runs at once, on the caller's thread.
    ///
    /// - Throws: a ``PHPhotosError``. The library is then unchanged; only after a transient error, such as a connection
    ///   that is lost until the deadline, it is unknown whether the changes were committed.
    public func performChanges(_ changeBlock: () -> Void) async throws {
        do throws(RPCError) {
            try await connection.perform(try ChangeRecorder.record(connection, changeBlock))
        } catch {
            throw PHPhotosError(error)
        }
    }

    /// Performs the requests of a block and blocks the caller until they are committed. Do not call it in asynchronous
    /// code.
    ///
    /// - Throws: errors of ``performChanges(_:)``
    public func performChangesAndWait(_ changeBlock: () -> Void) throws {
        do throws(RPCError) {
            let changes = try ChangeRecorder.record(connection, changeBlock)
            try connection.wait { [connection] () async throws(RPCError) in try await connection.perform(changes) }
        } catch {
            throw PHPhotosError(error)
        }
    }

    /// The queue of change blocks.
    private static let blocks = DispatchQueue(label: "photokit.blocks")
}

/// The changes that a program has requested without waiting for them.
///
/// In `main.swift` Swift prefers the form with a completion handler even after `await`, so that the program may end
/// before its last change was sent. With PhotoKit another process has the changes by then, and completes them.
private enum UnfinishedChanges {
    static let group: DispatchGroup = {
        atexit { _ = UnfinishedChanges.group.wait(timeout: .now() + .seconds(60)) }
        return DispatchGroup()
    }()
}
