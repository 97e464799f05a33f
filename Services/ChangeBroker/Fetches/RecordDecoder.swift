import Basics
import Dispatch
import JSONValue
import PhotoModel

/// Decodes change records, and evaluates fetches with them, on one thread of its own.
///
/// Decoding a record of a thousand entities takes long, and so does a predicate with many tests of long texts. Several
/// such requests at once would occupy every thread of Swift's pool, and all other requests would wait for them.
final class RecordDecoder: Sendable {
    private let queue: DispatchQueue

    /// - Parameter name: the purpose, for the name of the thread
    init(_ name: String) {
        // A lower priority than that of the threads that receive and publish.
        queue = DispatchQueue(label: "records.\(name)", qos: .utility)
    }

    /// Returns the result of a function, which is called on the decoder's thread, and the time that it took.
    func run<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> (value: Value, time: Duration) {
        await withCheckedContinuation { continuation in
            queue.async {
                let start = ContinuousClock.now
                let value = body()
                continuation.resume(returning: (value, ContinuousClock.now - start))
            }
        }
    }

    /// Returns the result of a function of the record, which is called on the decoder's thread.
    ///
    /// - Returns: an error if the bytes are not a record of this version
    func decode<Value: Sendable>(
        _ bytes: Bytes,
        _ body: @escaping @Sendable (ChangeRecord) -> Value
    ) async -> Result<Value, JSONProblem> {
        await withCheckedContinuation { continuation in
            queue.async {
                continuation.resume(
                    returning: Result { () throws(JSONProblem) in
                        guard let json = try? JSON(parsing: bytes) else { throw JSONProblem("is not JSON") }
                        return body(try ChangeRecord(json: json))
                    }
                )
            }
        }
    }
}
