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
/// entities. Two entities in one slot cost a request to the catalog, never an old answer. The content need not survive
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
    /// An existing file is overwritten and not replaced, because running processes have it mapped.
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
        if let file = Self.openExisting(path) {
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
    /// A transaction that is not committed after all costs requests to the catalog until a later one has its sequence.
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

    /// Opens a complete file of this layout; returns nil if there is none.
    private static func openExisting(_ path: String) -> Descriptor? {
        guard let file = try? Descriptor(opening: path, O_RDWR | O_NOFOLLOW),
            let status = try? file.status(), Int(status.st_size) == LastChangeLayout.bytes,
            (try? file.read(count: LastChangeLayout.magic.count, at: 0)) == LastChangeLayout.magic
        else { return nil }
        return file
    }

    private static func bytes(of slots: ArraySlice<Int64>) -> [UInt8] { slots.withUnsafeBytes { Array($0) } }
}

// MARK: - Reading

/// The mapped content of a ``LastChangeFile``. Reading it is one load from memory, without a lock or a system call.
///
/// A process that received a message which was sent after a change was recorded reads that change or a later one: the
/// kernel orders both. A read at the same time as a write returns either value, and then no client has received the
/// change yet.
public final class LastChangeTable: Sendable {
    /// The mapping, which exists as long as this object and is only read.
    nonisolated(unsafe) private let base: UnsafeRawPointer

    /// Maps the file.
    ///
    /// - Throws: ``StorageError`` if it cannot be opened, ``StorageError/corrupt(_:)`` if it is not such a file.
    public init(path: String) throws(StorageError) {
        let file = try Descriptor(opening: path, O_RDONLY | O_NOFOLLOW)
        guard Int(try file.status().st_size) == LastChangeLayout.bytes,
            try file.read(count: LastChangeLayout.magic.count, at: 0) == LastChangeLayout.magic
        else { throw .corrupt("\(path) is not a table of changes of this version") }
        guard let base = mmap(nil, LastChangeLayout.bytes, PROT_READ, MAP_SHARED, file.number, 0), base != MAP_FAILED
        else { throw .system(errno, "map \(path)") }
        self.base = UnsafeRawPointer(base)
    }

    deinit { munmap(UnsafeMutableRawPointer(mutating: base), LastChangeLayout.bytes) }

    /// Returns the highest sequence of a transaction that may have changed an entity.
    public func sequence(of id: String) -> Int64 {
        let offset = LastChangeLayout.headerBytes + LastChangeLayout.slot(of: id) * MemoryLayout<Int64>.size
        return base.load(fromByteOffset: offset, as: Int64.self)
    }

    /// Returns true if the table is the one that a library writes now: it has the library's id and a sequence that was
    /// committed.
    ///
    /// A table that is behind belongs to a replaced file, or its memory is not shared with the writer.
    ///
    /// - Parameters:
    ///   - library: the id of the library's history.
    ///   - sequence: a committed sequence.
    public func covers(library: String, sequence: Int64) -> Bool {
        let id = UnsafeRawBufferPointer(
            start: base + LastChangeLayout.magic.count,
            count: LastChangeLayout.libraryBytes
        )
        return base.load(fromByteOffset: LastChangeLayout.sequenceOffset, as: Int64.self) >= sequence
            && id.elementsEqual(library.utf8)
    }
}

// MARK: - Layout

/// The layout of the file: magic 8 bytes, library id 32, newest sequence 8, zeros to 64, then the slots. Numbers are in
/// the machine's byte order, because only processes of one machine share it.
enum LastChangeLayout {
    static let magic: [UInt8] = Array("SLLAST01".utf8)
    static let libraryBytes = 32
    static let sequenceOffset = 40
    static let headerBytes = 64
    static let slots = 1 << slotBits
    static let bytes = headerBytes + slots * MemoryLayout<Int64>.size
    private static let slotBits = 13

    static func header(library: String, sequence: Int64) -> [UInt8] {
        var bytes = magic + Array(library.utf8)
        withUnsafeBytes(of: sequence) { bytes.append(contentsOf: $0) }
        return bytes + [UInt8](repeating: 0, count: headerBytes - bytes.count)
    }

    /// Returns the slot of an identifier, by its last eight bytes, which are random.
    static func slot(of id: String) -> Int {
        let key = id.utf8.withContiguousStorageIfAvailable(tail) ?? Array(id.utf8).withUnsafeBufferPointer(tail)
        return Int((key &* 0x9E37_79B9_7F4A_7C15) >> (64 - UInt64(slotBits)))
    }

    private static func tail(of id: UnsafeBufferPointer<UInt8>) -> UInt64 {
        let length = MemoryLayout<UInt64>.size
        guard id.count >= length else { return id.reduce(0) { $0 << 8 | UInt64($1) } }
        return UnsafeRawBufferPointer(id).loadUnaligned(fromByteOffset: id.count - length, as: UInt64.self)
    }
}
