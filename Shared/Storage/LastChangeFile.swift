import Glibc
import Synchronization

/// The sequence of the last transaction that changed each entity, in a file that other processes map
/// (``LastChangeTable``).
///
/// The catalog records a transaction here before it commits it. A process that keeps entities in memory compares, for
/// each answer, the sequence up to which it knows all changes with the one recorded for the entity, and asks the
/// catalog if it is behind. So it never serves a state older than a commit, although its copy of the changes arrives
/// later, and no commit waits for it.
///
/// The entities share ``slots`` slots by a hash of their identifiers; each slot has the highest sequence of its
/// entities. Two entities in one slot cost a question to the catalog, never an old answer. The content need not survive
/// a power failure: every start fills the slots with the newest sequence.
public final class LastChangeFile: Sendable {
    /// The number of slots.
    public static let slots = LastChangeLayout.slots

    /// Returns the path of the file in a library's folder.
    public static func path(in library: String) -> String { library + "/last-changes" }

    private struct State: ~Copyable {
        let file: Descriptor
        var slots: [Int64]
    }

    private let state: Mutex<State>

    /// Opens the file, or creates it, for a library at a sequence.
    ///
    /// An existing file is kept and overwritten, because processes that run have it mapped.
    ///
    /// - Parameters:
    ///   - path: the file; its folder must exist.
    ///   - library: the id of the library's history, 32 bytes.
    ///   - sequence: the newest committed sequence.
    /// - Throws: ``StorageError`` if a system call fails, ``StorageError/invalid(_:)`` for an id of another length.
    public init(path: String, library: String, sequence: Int64) throws(StorageError) {
        guard library.utf8.count == LastChangeLayout.libraryBytes else {
            throw .invalid("the id of a library's history has \(LastChangeLayout.libraryBytes) bytes")
        }
        let slots = [Int64](repeating: sequence, count: Self.slots)
        let content = LastChangeLayout.header(library: library, sequence: sequence) + Self.bytes(of: slots[...])
        if let file = Self.existing(path) {
            try file.write(content, at: 0)
            state = Mutex(State(file: file, slots: slots))
        } else {
            // A mapped file must never be shorter than the table, so a new one gets its name when it is complete.
            let partial = path + ".part"
            let file = try Descriptor(opening: partial, O_RDWR | O_CREAT | O_TRUNC | O_NOFOLLOW, mode: 0o600)
            try file.write(content, at: 0)
            guard rename(partial, path) == 0 else { throw .system(errno, "rename to \(path)") }
            state = Mutex(State(file: file, slots: slots))
        }
    }

    /// Records changes before they are committed.
    ///
    /// A transaction that is not committed after all costs questions to the catalog until a later one has its sequence.
    ///
    /// - Parameters:
    ///   - changes: the identifiers of changed entities and the sequences of their transactions, in ascending order.
    ///   - head: the newest sequence of the library after the commit.
    /// - Throws: ``StorageError`` if writing fails.
    public func record(_ changes: [(id: String, sequence: Int64)], head: Int64) throws(StorageError) {
        try state.withLock { (state) throws(StorageError) in
            var first = Self.slots
            var last = -1
            for change in changes {
                let slot = LastChangeLayout.slot(of: change.id)
                state.slots[slot] = change.sequence
                first = min(first, slot)
                last = max(last, slot)
            }
            if first <= last {
                let offset = LastChangeLayout.headerBytes + first * MemoryLayout<Int64>.size
                try state.file.write(Self.bytes(of: state.slots[first...last]), at: Int64(offset))
            }
            try state.file.write(
                withUnsafeBytes(of: head) { Array($0) },
                at: Int64(LastChangeLayout.sequenceOffset)
            )
        }
    }

    /// Opens a complete file of this layout; nil if there is none.
    private static func existing(_ path: String) -> Descriptor? {
        guard let file = try? Descriptor(opening: path, O_RDWR | O_NOFOLLOW),
            let status = try? file.status(), Int(status.st_size) == LastChangeLayout.bytes,
            (try? file.read(count: LastChangeLayout.magic.count, at: 0)) == LastChangeLayout.magic
        else { return nil }
        return file
    }

    private static func bytes(of slots: ArraySlice<Int64>) -> [UInt8] { slots.withUnsafeBytes { Array($0) } }
}
