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
    public static let maxAttachments = 64
    static let maxHeaderBytes = 16 << 20

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

// MARK: - Reading

extension WorkerFrame {
    /// Reads frames from a socket, blocking or not.
    struct Reader {
        /// The outcome of ``receive(from:)``.
        enum Progress: Equatable {
            /// The frame is incomplete and no more bytes are available.
            case waiting
            case frame(WorkerFrame)
        }

        private enum Stage {
            case length
            case header
            case attachment
        }

        /// Maximum total size of a frame's attachments in bytes.
        let limit: Int
        /// Descriptors received with the frame; the receiver closes them.
        private(set) var files: [Int32] = []

        private var stage = Stage.length
        private var buffer = [UInt8](repeating: 0, count: 4)
        private var filled = 0
        private var header = JSON.null
        private var lengths: ArraySlice<Int> = []
        private var attachments: [[UInt8]] = []

        init(limit: Int) {
            self.limit = limit
        }

        /// Removes and returns the received descriptors.
        mutating func removeFiles() -> [Int32] {
            defer { files = [] }
            return files
        }

        mutating func receive(from socket: Int32) throws(WorkerChannelError) -> Progress {
            while true {
                while filled < buffer.count {
                    guard try fill(from: socket) else { return .waiting }
                }
                if let frame = try advance() { return .frame(frame) }
            }
        }

        // Reads available bytes into the buffer of the current stage; returns false if there are none.
        private mutating func fill(from socket: Int32) throws(WorkerChannelError) -> Bool {
            var descriptors = [Int32](repeating: -1, count: Int(SAFELIGHT_MAX_DESCRIPTORS))
            var arrived = 0
            let start = filled
            var problem: Int32 = 0
            let count = buffer.withUnsafeMutableBytes { bytes in
                let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[start...])
                let count = safelight_receive(socket, rest.baseAddress, rest.count, &descriptors, &arrived)
                problem = count < 0 ? errno : 0
                return count
            }
            files.append(contentsOf: descriptors[..<arrived])
            if files.count > Int(SAFELIGHT_MAX_DESCRIPTORS) { throw .malformed("too many descriptors") }
            if problem == EAGAIN { return false }
            if problem == ECONNRESET { throw .closed }
            guard problem == 0 else { throw .system(problem) }
            guard count > 0 else { throw .closed }
            filled += count
            return true
        }

        // Advances to the next stage when the buffer is full; returns a frame if it is complete.
        private mutating func advance() throws(WorkerChannelError) -> WorkerFrame? {
            switch stage {
            case .length:
                let length = Int(buffer.reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
                guard length >= 2 else { throw .malformed("a frame of \(length) bytes") }
                guard length <= WorkerFrame.maxHeaderBytes else { throw .tooLarge }
                begin(.header, length)
                return nil
            case .header:
                try readHeader()
            case .attachment:
                attachments.append(buffer)
            }
            if let next = lengths.popFirst() {
                begin(.attachment, next)
                return nil
            }
            let frame = WorkerFrame(header: header, attachments: attachments)
            attachments = []
            header = .null
            begin(.length, 4)
            return frame
        }

        private mutating func readHeader() throws(WorkerChannelError) {
            do {
                header = try JSON(parsing: buffer)
            } catch {
                throw .malformed("\(error)")
            }
            guard case .object(let object) = header else { throw .malformed("the header is not an object") }
            let values = object["attachments"]?.arrayValue ?? []
            guard values.count <= WorkerFrame.maxAttachments else { throw .tooLarge }
            var total = 0
            var lengths: [Int] = []
            for value in values {
                guard let length = value.intValue, length >= 0 else { throw .malformed("a length is not an integer") }
                guard length <= limit - total else { throw .tooLarge }
                total += Int(length)
                lengths.append(Int(length))
            }
            self.lengths = lengths[...]
        }

        private mutating func begin(_ stage: Stage, _ count: Int) {
            self.stage = stage
            buffer = [UInt8](repeating: 0, count: count)
            filled = 0
        }
    }
}

// MARK: - Writing

extension WorkerFrame {
    /// Writes one frame to a socket, blocking or not.
    struct Writer {
        private var parts: ArraySlice<[UInt8]>
        private var offset = 0
        private var files: [Int32]
        /// True if any byte was sent.
        private(set) var hasBegun = false

        /// Creates a writer of a frame; the descriptors must stay open until ``isDone``.
        init(_ frame: WorkerFrame, files: [Int32] = []) {
            self.parts = ([frame.head] + frame.attachments)[...]
            self.files = files
        }

        var isDone: Bool { parts.isEmpty }

        /// Sends as many bytes as the socket accepts.
        mutating func send(to socket: Int32) throws(WorkerChannelError) {
            while let part = parts.first {
                guard offset < part.count else {
                    parts.removeFirst()
                    offset = 0
                    continue
                }
                let start = offset
                let sending = files
                var problem: Int32 = 0
                let count = part.withUnsafeBytes { bytes in
                    let rest = UnsafeRawBufferPointer(rebasing: bytes[start...])
                    let count = safelight_send(socket, rest.baseAddress, rest.count, sending, sending.count)
                    problem = count < 0 ? errno : 0
                    return count
                }
                if problem == EAGAIN { return }
                if problem == EPIPE || problem == ECONNRESET { throw .closed }
                guard problem == 0 else { throw .system(problem) }
                hasBegun = true
                files = []
                offset += count
            }
        }
    }
}

// MARK: - Errors

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
