import Glibc
import Synchronization
import SystemPackage

/// A file that is written in pieces under a temporary name and renamed when it is complete and on the disk. A device or
/// a pipe is written directly: only its owner may replace it.
struct OutputFileWriter {
    private let path: String
    /// The file to replace: the destination of a symbolic link, so that the link remains.
    private let target: FilePath
    /// The temporary name; nil if the path is written directly.
    private let partial: FilePath?
    private let file: FileDescriptor
    private let replaces: Bool
    private let sync: FileSync

    /// - Parameters:
    ///   - replaces: false to refuse a path that exists, also if it appears before the end
    ///   - sync: makes the file durable
    init(_ path: String, replaces: Bool = true, sync: FileSync = .system) throws {
        self.path = path
        self.replaces = replaces
        self.sync = sync
        switch Self.kind(of: path) {
        case nil:
            target = FilePath(path)
            partial = Self.partial(of: path)
        case _ where !replaces: throw Self.failure(path, Self.appeared)
        case S_IFREG:
            let resolved = Self.resolved(path)
            target = FilePath(resolved)
            partial = Self.partial(of: resolved)
        case S_IFDIR: throw Self.failure(path, "it is a folder")
        case S_IFLNK: throw Self.failure(path, "it is a link to a file that does not exist")
        default: (target, partial) = (FilePath(path), nil)
        }
        if let partial { UnfinishedFiles.insert(partial.string) }
        do {
            file = try FileDescriptor.open(
                partial ?? target,
                .writeOnly,
                options: partial == nil ? [] : [.create, .exclusiveCreate],
                permissions: partial == nil ? nil : [.ownerReadWrite, .groupRead, .otherRead]
            )
        } catch {
            if let partial { UnfinishedFiles.remove(partial.string) }
            throw Self.failure(path, "\(error)")
        }
    }

    /// Returns the type of the file at a path. Follows symbolic links, except one without a destination; nil if there
    /// is no file.
    private static func kind(of path: String) -> mode_t? {
        var status = Glibc.stat()
        guard stat(path, &status) == 0 || lstat(path, &status) == 0 else { return nil }
        return status.st_mode & S_IFMT
    }

    private static func resolved(_ path: String) -> String {
        guard let resolved = realpath(path, nil) else { return path }
        defer { free(resolved) }
        return String(cString: resolved)
    }

    /// Returns a random temporary name; processes of different containers can have the same number.
    private static func partial(of path: String) -> FilePath {
        FilePath(path + ".\(String(UInt64.random(in: .min ... .max), radix: 36)).part")
    }

    private static let appeared = "another file has this name meanwhile; run the command again"

    /// Returns the error that the file cannot be written.
    func failure(_ reason: String) -> CommandFailure { Self.failure(path, reason) }

    private static func failure(_ path: String, _ reason: String) -> CommandFailure {
        CommandFailure(message: "\(path) cannot be written: \(reason)", name: "not_written")
    }

    func write(_ bytes: [UInt8]) throws {
        do {
            try file.writeAll(bytes)
        } catch {
            abandon()
            throw failure("\(error)")
        }
    }

    /// Makes the file durable and renames it to its final name.
    func finish() throws {
        try close(isSynced: true)
        try publish()
        guard partial != nil, let folder = FileSync.folder(of: target) else { return }
        do { try folder.closeAfter { try sync.names(folder) } } catch { throw failure("\(error)") }
    }

    /// Closes the complete file, which keeps its temporary name until ``publish()``.
    ///
    /// - Parameter isSynced: false if the caller makes it durable before ``publish()``
    func close(isSynced: Bool) throws {
        if isSynced, partial != nil {
            do {
                try sync.content(file)
            } catch {
                abandon()
                throw failure("\(error)")
            }
        }
        do {
            // Network filesystems and quotas may report write errors only when the file is closed.
            try file.close()
        } catch {
            discard()
            throw failure("\(error)")
        }
    }

    /// Renames the closed file to its final name. If that fails, deletes it.
    func publish() throws {
        guard let partial else { return }
        if !replaces {
            // `link` is one step, and fails if the name exists.
            if link(partial.string, target.string) == 0 { return discard() }
            guard errno != EEXIST else {
                discard()
                throw failure(Self.appeared)
            }
            try reserve()
        }
        guard rename(partial.string, target.string) != 0 else { return UnfinishedFiles.remove(partial.string) }
        let problem = Errno(rawValue: errno)
        if !replaces { unlink(target.string) }
        discard()
        throw failure("\(problem)")
    }

    /// Creates an empty file under the final name, or throws if it exists: for filesystems without hard links.
    private func reserve() throws {
        do {
            let empty = try FileDescriptor.open(
                target,
                .writeOnly,
                options: [.create, .exclusiveCreate],
                permissions: .ownerReadWrite
            )
            try empty.close()
        } catch {
            discard()
            throw failure((error as? Errno) == .fileExists ? Self.appeared : "\(error)")
        }
    }

    /// Closes and deletes the incomplete file.
    func abandon() {
        try? file.close()
        discard()
    }

    /// Deletes the closed file, which still has its temporary name.
    func discard() {
        guard let partial else { return }
        unlink(partial.string)
        UnfinishedFiles.remove(partial.string)
    }
}

/// The temporary files that ``OutputFileWriter`` is writing, for a command that is interrupted.
enum UnfinishedFiles {
    private static let paths = Mutex<Set<String>>([])

    static func insert(_ path: String) { paths.withLock { _ = $0.insert(path) } }
    static func remove(_ path: String) { paths.withLock { _ = $0.remove(path) } }

    /// Makes SIGINT, SIGTERM and SIGHUP delete the files and end the program, as long as the result exists.
    static func removeAtSignals() -> StopSignals { StopSignals { end(by: $0) } }

    /// Ends the program while it holds the lock, so that no other file is begun.
    private static func end(by number: Int32) {
        paths.withLock { paths in
            for path in paths { unlink(path) }
            InterruptedWork.report()
            _exit(128 + number)
        }
    }
}
