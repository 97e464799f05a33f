import Basics
import Glibc
import Synchronization

/// A small file that stores, apart from the database, the id of the library's history and its newest sequence.
///
/// The catalog stores its head here after each commit and before the replies. A database whose sequence is below it at
/// start is a restored old copy, and begins a new history. The file also stores the identities of itself and of the
/// database: in a copy of the folder these differ. Each start replaces the file (``renew(library:sequence:)``), so that
/// an older head file copied over it contains a different identity. Two slots in separate blocks are written
/// alternately, each with a checksum: a torn write damages one and leaves the other, which is one commit older.
public final class HeadFile: Sendable {
    /// The stored state of the library.
    public struct Head: Sendable, Equatable {
        /// The id of the library's history.
        public var library: String
        /// The newest committed sequence.
        public var sequence: Int64

        /// Creates a head.
        public init(library: String, sequence: Int64) {
            self.library = library
            self.sequence = sequence
        }
    }

    /// The longest library id, in UTF-8 bytes.
    public static let maxLibraryIDBytes = 128

    private static let slotBytes = 512
    private static let slotDistance: Int64 = 4096
    private static let magic: [UInt8] = Array("SLHEAD01".utf8)

    /// The result of comparing the stored identities with the files.
    public enum Origin: Sendable, Equatable {
        /// Both files are the ones that the head was stored for.
        case same
        /// The head was stored by an earlier version without identities, or there is no head.
        case unknown
        /// The database is a different file: it was copied or restored.
        case otherDatabase
        /// The head file is a different file: the folder was copied, or an older head file was restored.
        case otherHead
    }

    /// The path of the head file.
    public let path: String
    private let database: String?
    private let state: Mutex<State>

    private struct State: ~Copyable {
        let file: Descriptor
        var generation: UInt64
        var head: Head?
        /// The identities of the head file and of the database that are stored with the head.
        var files: Files?
        var isDamaged: Bool
        /// True if everything stored so far survives a power failure.
        var isSynced = true
    }

    private struct Files: Equatable {
        var head: FileBirth
        var database: FileBirth
    }

    private struct Slot {
        var generation: UInt64
        var head: Head
        var files: Files?
    }

    /// Opens the file, or creates it durably.
    ///
    /// - Parameters:
    ///   - path: the file; its folder must exist.
    ///   - database: the path of its database; nil: no identities are stored.
    /// - Throws: ``StorageError`` if a system call fails. A damaged file is opened; ``load()`` throws then.
    public init(path: String, database: String? = nil) throws(StorageError) {
        self.path = path
        self.database = database
        let file = try Descriptor(opening: path, O_RDWR | O_CREAT | O_NOFOLLOW, mode: 0o600)
        let size = try file.status().st_size
        if size == 0 {
            // Allocate the blocks now: a later store changes no metadata and cannot fail on a full disk.
            try file.write([UInt8](repeating: 0, count: Int(Self.slotDistance) + Self.slotBytes), at: 0)
            try file.sync()
            try DirectoryOperations.sync(Self.folder(of: path))
        } else {
            // The previous process may have ended before it synced.
            try file.syncData()
        }
        var newest: Slot?
        var unreadable = 0
        for slot in 0..<2 {
            let bytes = try file.read(count: Self.slotBytes, at: Int64(slot) * Self.slotDistance)
            if let read = Self.decode(bytes) {
                if read.generation >= (newest?.generation ?? 0) { newest = read }
            } else if bytes.contains(where: { $0 != 0 }) || (size != 0 && bytes.count < Self.slotBytes) {
                unreadable += 1
            }
        }
        state = Mutex(
            State(
                file: file,
                generation: newest?.generation ?? 0,
                head: newest?.head,
                files: newest?.files,
                isDamaged: newest == nil && unreadable > 0
            )
        )
    }

    /// Returns the head stored last; `nil` in a new file.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` if a head was stored and neither slot can be read.
    public func load() throws(StorageError) -> Head? {
        let (head, isDamaged) = state.withLock { ($0.head, $0.isDamaged) }
        guard !isDamaged else {
            throw .corrupt("\(path) is damaged; remove it to begin a new history of the library")
        }
        return head
    }

    /// Compares the stored identities with those of the head file and the database.
    ///
    /// - Throws: ``StorageError`` if a system call fails.
    public func origin() throws(StorageError) -> Origin {
        guard let database, let files = state.withLock({ $0.files }) else { return .unknown }
        guard files.database.isSameFile(as: try FileBirth(path: database)) else { return .otherDatabase }
        return files.head.isSameFile(as: try FileBirth(path: path)) ? .same : .otherHead
    }

    /// Replaces the file by a new one whose head contains the current identities; durable when it returns. A power
    /// failure leaves either the old or the new file.
    ///
    /// - Returns: the new file; on a full disk the old one, updated.
    /// - Throws: ``StorageError`` if a system call fails.
    public func renew(library: String, sequence: Int64) throws(StorageError) -> HeadFile {
        guard let database else { throw .invalid("the head file has no database") }
        let partial = path + ".new"
        unlink(partial)
        do throws(StorageError) {
            let file = try HeadFile(path: partial, database: database)
            try file.setIdentities(headPath: partial)
            try file.store(library: library, sequence: sequence)
            guard rename(partial, path) == 0 else { throw .system(errno, "rename to \(path)") }
            try DirectoryOperations.sync(Self.folder(of: path))
            return try HeadFile(path: path, database: database)
        } catch .notEnoughSpace {
            unlink(partial)
            try setIdentities(headPath: path)
            try store(library: library, sequence: sequence)
            return self
        }
    }

    /// Reads the identities that are stored with the next head.
    private func setIdentities(headPath: String) throws(StorageError) {
        guard let database else { return }
        let files = Files(head: try FileBirth(path: headPath), database: try FileBirth(path: database))
        state.withLock { $0.files = files }
    }

    /// Stores the head. When this returns it survives the end of any process, and with `isDurable` also a power
    /// failure.
    ///
    /// If a power failure discards it, an older head remains.
    ///
    /// - Parameters:
    ///   - library: the id of the history, 1 to 128 bytes.
    ///   - sequence: the newest committed sequence, 0 or more.
    ///   - isDurable: false leaves syncing to ``sync()``.
    /// - Throws: ``StorageError`` if writing fails, ``StorageError/invalid(_:)`` for values outside those ranges.
    public func store(library: String, sequence: Int64, isDurable: Bool = true) throws(StorageError) {
        guard !library.isEmpty, library.utf8.count <= Self.maxLibraryIDBytes, sequence >= 0 else {
            throw .invalid("a head needs a library id of at most \(Self.maxLibraryIDBytes) bytes and a sequence from 0")
        }
        try state.withLock { (state) throws(StorageError) in
            let head = Head(library: library, sequence: sequence)
            // Until the last write is synced, the same slot is overwritten: a power failure may damage it, and the
            // other one must stay intact.
            let generation = state.generation &+ (state.isSynced ? 1 : 2)
            let bytes = Self.encode(Slot(generation: generation, head: head, files: state.files))
            try state.file.write(bytes, at: Int64(generation % 2) * Self.slotDistance)
            state.isSynced = false
            state.generation = generation
            state.head = head
            state.isDamaged = false
            guard isDurable else { return }
            try state.file.syncData()
            state.isSynced = true
        }
    }

    /// Makes the stored head durable.
    ///
    /// - Throws: ``StorageError`` if syncing fails.
    public func sync() throws(StorageError) {
        try state.withLock { (state) throws(StorageError) in
            guard !state.isSynced else { return }
            try state.file.syncData()
            state.isSynced = true
        }
    }

    // Layout of a slot: magic 8 bytes, generation 8, sequence 8, length 2, library id, zeros to 256, the identities of
    // the head file and of the database 32 each, zeros; SHA-256 of all that in the last 32.
    private static let filesOffset = 256

    private static func encode(_ slot: Slot) -> [UInt8] {
        var bytes = magic
        withUnsafeBytes(of: slot.generation.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: slot.head.sequence.littleEndian) { bytes.append(contentsOf: $0) }
        withUnsafeBytes(of: UInt16(slot.head.library.utf8.count).littleEndian) { bytes.append(contentsOf: $0) }
        bytes.append(contentsOf: slot.head.library.utf8)
        bytes.append(contentsOf: repeatElement(0, count: filesOffset - bytes.count))
        if let files = slot.files { bytes += files.head.bytes + files.database.bytes }
        bytes.append(contentsOf: repeatElement(0, count: slotBytes - 32 - bytes.count))
        bytes.append(contentsOf: SHA256.hash(data: bytes))
        return bytes
    }

    private static func decode(_ bytes: [UInt8]) -> Slot? {
        guard bytes.count == slotBytes, bytes.starts(with: magic),
            SHA256.hash(data: bytes[..<(slotBytes - 32)]).elementsEqual(bytes[(slotBytes - 32)...])
        else { return nil }
        func number(at offset: Int, bytes count: Int) -> UInt64 {
            bytes[offset..<(offset + count)].reversed().reduce(0) { $0 << 8 | UInt64($1) }
        }
        let length = Int(number(at: 24, bytes: 2))
        guard length <= maxLibraryIDBytes else { return nil }
        let library = String(decoding: bytes[26..<(26 + length)], as: UTF8.self)
        let sequence = Int64(bitPattern: number(at: 16, bytes: 8))
        func birth(at offset: Int) -> FileBirth? { FileBirth(bytes: bytes[offset..<(offset + 32)]) }
        let files = birth(at: filesOffset).flatMap { head in
            birth(at: filesOffset + 32).map { Files(head: head, database: $0) }
        }
        return Slot(
            generation: number(at: 8, bytes: 8),
            head: Head(library: library, sequence: sequence),
            files: files
        )
    }

    private static func folder(of path: String) -> String {
        guard let slash = path.lastIndex(of: "/") else { return "." }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
