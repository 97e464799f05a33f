import Basics
import Glibc
import Synchronization

/// Copies a stored resource to a file outside the store, in steps, so that other work can run between them.
///
/// The file gets its name when it is complete, verified and on the disk. Until then it has none, so that a process that
/// is killed leaves nothing behind. Where the file system has no files without a name, it is a hidden file of the same
/// folder, which is removed if the copy fails, is cancelled or is released before ``finish()``.
public final class FileExport: Sendable {
    private let file: ResourceFile
    private let path: String
    /// The hidden name of the file.
    private let partial: String
    /// True if the file has no name yet.
    private let isNameless: Bool
    private let replaces: Bool
    /// The bytes that are copied; nil for all. All are read, because only the whole file can be verified.
    private let part: Range<Int64>?
    private let state: Mutex<State>

    private struct State: ~Copyable {
        var target: Descriptor?
        var hash = SHA256()
        var offset: Int64 = 0
    }

    /// Creates the file, without a name.
    ///
    /// - Parameters:
    ///   - file: a resource of a store.
    ///   - part: the bytes that are copied; nil for all.
    ///   - path: the new file, an absolute path; its folder must exist.
    ///   - replaces: true to replace an existing file.
    /// - Throws: ``StorageError/invalid(_:)`` if the file exists and is not to be replaced, or is a folder;
    ///   ``StorageError`` if a system call fails.
    public init(
        of file: ResourceFile,
        _ part: Range<Int64>? = nil,
        to path: String,
        replaces: Bool
    ) throws(StorageError) {
        self.file = file
        self.part = part
        self.path = path
        self.replaces = replaces
        try Self.check(path, replaces: replaces)
        let slash = path.lastIndex(of: "/") ?? path.startIndex
        var random = SystemRandomNumberGenerator()
        // The name of the file itself may be as long as the file system allows.
        partial = "\(path[..<slash])/.safelight-\(String(random.next(), radix: 16)).part"
        // `__O_TMPFILE` is `O_TMPFILE`, which Swift does not import. `/` is the folder of a file in the root.
        let folder = "\(path[...slash])"
        if let target = try? Descriptor(opening: folder, O_WRONLY | __O_TMPFILE, mode: 0o644) {
            isNameless = true
            state = Mutex(State(target: target))
        } else {
            isNameless = false
            let target = try Descriptor(opening: partial, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o644)
            state = Mutex(State(target: target))
        }
    }

    deinit { cancel() }

    /// Copies the next bytes, at most ``FileHash/stepBytes``; blocks.
    ///
    /// - Returns: true if there are more.
    /// - Throws: ``StorageError`` if reading or writing fails.
    public func next() throws(StorageError) -> Bool {
        try state.withLock { (state) throws(StorageError) in
            let end = min(state.offset + FileHash.stepBytes, file.size)
            while state.offset < end {
                let bytes = try file.read(
                    offset: state.offset,
                    count: Int(min(end - state.offset, Int64(ResourceStore.stepBytes)))
                )
                guard !bytes.isEmpty else { return false }
                let copied = (part ?? 0..<file.size).clamped(to: state.offset..<state.offset + Int64(bytes.count))
                if !copied.isEmpty {
                    let start = Int(copied.lowerBound - state.offset)
                    try state.target?.write(part == nil ? bytes : Array(bytes[start..<start + copied.count]))
                }
                state.hash.update(data: bytes)
                state.offset += Int64(bytes.count)
            }
            return state.offset < file.size
        }
    }

    /// Verifies the bytes, makes them durable and gives the file its name.
    ///
    /// - Throws: ``StorageError/resourceChanged(_:)`` if the stored bytes are damaged, ``StorageError/invalid(_:)`` if
    ///   the file was created meanwhile and is not to be replaced, ``StorageError`` if a system call fails.
    public func finish() throws(StorageError) {
        defer { cancel() }
        try state.withLock { (state) throws(StorageError) in
            guard state.target != nil else { throw .invalid("the export has ended") }
            guard ResourceDigest(state.hash.finalize()) == file.digest else {
                throw .resourceChanged("the stored bytes are damaged; restore the file from a backup")
            }
            try state.target?.sync()
            guard isNameless, let number = state.target?.number else { return }
            // Only a rename replaces a file, and a rename needs a name.
            try link("/proc/self/fd/\(number)", to: replaces ? partial : path)
        }
        if isNameless {
            if replaces { try renamePartial() }
        } else if !replaces, Glibc.link(partial, path) == 0 {
            unlink(partial)
        } else {
            // Where the file system has no links, a file created since the check is replaced.
            guard replaces || errno != EEXIST else { throw Self.exists(path) }
            try renamePartial()
        }
        state.withLock { $0.target = nil }
        try DirectoryOperations.sync(String(path[...(path.lastIndex(of: "/") ?? path.startIndex)]))
    }

    /// Gives an open file a name that no other file has.
    private func link(_ descriptor: String, to name: String) throws(StorageError) {
        guard linkat(AT_FDCWD, descriptor, AT_FDCWD, name, AT_SYMLINK_FOLLOW) != 0 else { return }
        throw errno == EEXIST && !replaces ? Self.exists(path) : .system(errno, "link \(name)")
    }

    private func renamePartial() throws(StorageError) {
        guard rename(partial, path) == 0 else {
            let number = errno
            unlink(partial)
            throw .system(number, "rename to \(path)")
        }
    }

    /// Removes the copied bytes; does nothing after ``finish()`` or an earlier call.
    public func cancel() {
        let wasOpen = state.withLock { state in
            let wasOpen = state.target != nil
            state.target = nil
            return wasOpen
        }
        if wasOpen, !isNameless { unlink(partial) }
    }

    private static func check(_ path: String, replaces: Bool) throws(StorageError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .invalid("\(path) is not a file; choose another path") }
        guard replaces else { throw exists(path) }
    }

    private static func exists(_ path: String) -> StorageError {
        .invalid("\(path) exists; choose another path, or set replace")
    }
}
