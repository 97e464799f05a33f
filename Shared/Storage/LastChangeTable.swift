import Glibc

/// The mapped content of a ``LastChangeFile``. Reading it is one load from memory, without a lock or a system call.
///
/// A process that received a message which was sent after a change was recorded reads that change or a later one: the
/// kernel orders both. A read at the same time as a write returns either value, and then no client has received the
/// change yet.
public final class LastChangeTable: Sendable {
    /// The mapping, which lives as long as this object and is not written here.
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
