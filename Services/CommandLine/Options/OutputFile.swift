import Glibc
import Synchronization
import SystemPackage

/// Writes files that the user names; `-` is standard output.
enum OutputFile {
    /// Refuses a name of another format for a command that writes JPEG.
    static func requireJPEG(_ path: String) throws {
        guard path != "-", let name = FilePath(path).lastComponent, let ending = name.extension?.lowercased() else {
            return
        }
        guard ["jpg", "jpeg", "jpe", "jfif"].contains(ending) else {
            throw CommandFailure.usage("the image is a JPEG and cannot be written as .\(ending.prefix(20)); use .jpg")
        }
    }

    /// Writes a file atomically: it is either complete or not there.
    ///
    /// - Parameter replaces: false to refuse a path where there is something
    static func write(_ bytes: [UInt8], to path: String, replaces: Bool = true) throws {
        if path == "-" {
            guard isatty(1) == 0 else {
                throw CommandFailure.usage("binary data is not written to a terminal; name a file with -o")
            }
            do {
                try FileDescriptor.standardOutput.writeAll(bytes)
            } catch {
                throw CommandFailure(message: "standard output cannot be written: \(error)", name: "not_written")
            }
            return
        }
        let writer = try OutputFileWriter(path, replaces: replaces)
        try writer.write(bytes)
        try writer.finish()
    }
}

/// A file that is written in pieces under a temporary name and renamed when it is complete and on the disk. A device or
/// a pipe is written directly: only its owner may replace it.
struct OutputFileWriter {
    private let path: String
    /// The file to replace: where a symbolic link leads, which stays a link.
    private let target: FilePath
    /// The temporary name; nil if the path is written directly.
    private let partial: FilePath?
    private let file: FileDescriptor
    private let replaces: Bool
    private let sync: FileSync

    /// - Parameters:
    ///   - replaces: false to refuse a path where there is something, also if it appears before the end
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
        case S_IFLNK: throw Self.failure(path, "it is a link to a file that is not there")
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

    /// Returns the type of what a path leads to, that of the link if it leads nowhere; nil if there is nothing.
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

    /// Returns a name that no other process uses; in containers many have the same number.
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

    /// Makes the file durable and gives it its name.
    func finish() throws {
        try close(isSynced: true)
        try publish()
        guard partial != nil, let folder = FileSync.folder(of: target) else { return }
        do { try folder.closeAfter { try sync.names(folder) } } catch { throw failure("\(error)") }
    }

    /// Closes the complete file, which keeps its temporary name until ``publish()``.
    ///
    /// - Parameter isSynced: false if the caller makes it durable before it gets its name
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
            // Network disks and quotas refuse at the end what they took before.
            try file.close()
        } catch {
            discard()
            throw failure("\(error)")
        }
    }

    /// Gives the closed file its name. If that fails, nothing is left of it.
    func publish() throws {
        guard let partial else { return }
        if !replaces {
            // One step, which an interruption does not leave by half.
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

    /// Creates an empty file under the final name, or fails if there is something: for disks without links.
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

    /// Deletes the closed file, which does not have its name yet.
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

    /// Makes the usual signals delete the files and end the program, as long as the result is kept.
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
