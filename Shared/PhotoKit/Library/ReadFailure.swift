import JSONValue
import Logging
import Synchronization

/// The reason why a result could not be read to its end. The copies of a result share it.
///
/// PhotoKit's functions that read a result cannot throw. They end at the first failure, and store its reason here.
final class ReadFailure: Sendable {
    private let last: Mutex<PHPhotosError?>

    init(_ error: PHPhotosError? = nil) { last = Mutex(error) }

    /// The last reason; nil if the library has refused no request.
    var error: PHPhotosError? { last.withLock { $0 } }

    /// Stores an error, and logs it unless it repeats the last one: a program may read each row of a list.
    func record(_ error: RPCError, _ connection: LibraryConnection) {
        let error = PHPhotosError(error)
        let isNew = last.withLock { last in
            defer { last = error }
            return last != error
        }
        guard isNew else { return }
        connection.logger.warning("a result cannot be read to its end", metadata: ["error": "\(error)"])
    }
}
