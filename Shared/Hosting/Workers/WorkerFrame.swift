import CProcess
import Glibc
import JSONValue

/// A frame on the socket between a pool and a worker, in both directions: a 4-byte big-endian length, a JSON object of
/// that length, then the bytes of the attachments.
///
/// The object of a job is `{"method", "params", "files": <count>, "attachments": [<length>, …]}`; its descriptors are
/// sent by SCM_RIGHTS with the first byte. A response is `{"result", "attachments"}` or
/// `{"error": {"name", "message"}}`; before it a worker may send `{"phase": "reading"}` and `{"phase": "working"}` as
/// often as the phase changes. The first frame of a worker, sent when it is ready, is `{"worker": 1}`, with
/// `"confinement": {"landlock", "seccomp"}` if it is confined.
public struct WorkerFrame: Sendable, Equatable {
    /// Maximum number of attachments in a frame.
    public static let mostAttachments = 64
    static let largestHeader = 16 << 20

    var header: JSON
    var attachments: [[UInt8]] = []

    /// The first bytes of the frame: the length and the object.
    var head: [UInt8] {
        var object = header.objectValue ?? [:]
        object["attachments"] = .array(attachments.map { JSON($0.count) })
        let bytes = JSON.object(object).bytes
        let length = UInt32(clamping: bytes.count)
        return withUnsafeBytes(of: length.bigEndian) { Array($0) } + bytes
    }
}

/// An error after which a worker's socket cannot be used.
enum WorkerChannelError: Error, Equatable {
    /// The other end closed.
    case closed
    /// The received bytes are not a valid frame.
    case malformed(String)
    /// The frame is larger than the reader allows.
    case tooLarge
    /// A system call failed, with its error number.
    case system(Int32)
}
