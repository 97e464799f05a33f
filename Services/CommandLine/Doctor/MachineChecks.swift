import Messaging
import Glibc
import Hosting

/// The checks that need no service: folders, disk space, keys, clock and locks.
struct MachineChecks {
    let library: String
    let run: RunFolder
    let keys: KeyFolder?
    /// Microseconds since 1970.
    let now: Int64
    /// The history of the library that the catalog opened last at this path; nil if none is known.
    var lostLibrary: String?
    /// False if the database is on a server, and not in the folder.
    var hasDatabase = true

    /// A file that every library has: the database, or `head` if the database is on a server.
    private var file: String { hasDatabase ? "\(library)/library.sqlite" : "\(library)/head" }

    /// 2025-01-01; an earlier time means that the clock is wrong. Microseconds since 1970.
    static let earliest: Int64 = 1_735_689_600_000_000
    /// The free bytes of the disk below which there is a problem.
    static let problemSpace: Int64 = 256 << 20
    /// The free bytes of the disk below which there is a warning.
    static let warningSpace: Int64 = 2 << 30

    func findings() -> [Finding] { [runFolder, libraryFolder] + disk + keyFolder + [clock] + locks }

    // MARK: Folders

    private var runFolder: Finding {
        do throws(HostingError) {
            try run.check()
            return .ok("run folder", "\(run.path) is accessible to this user only")
        } catch {
            if case .noRunFolder = error {
                if let process = Self.process(locking: "\(library)/lock") {
                    return .problem(
                        "run folder",
                        "\(run.path) does not exist, but the catalog of \(library) runs as process \(process)",
                        "name its folder with SAFELIGHT_RUN; if that was deleted, end the services and start them again"
                    )
                }
                return .warning("run folder", "\(run.path) does not exist", "the services create it: `safelight up`")
            }
            return .problem(
                "run folder",
                error.description,
                "run this as the user of the services, or choose another with SAFELIGHT_RUN"
            )
        }
    }

    private var libraryFolder: Finding {
        if access(file, F_OK) != 0, let history = lostLibrary {
            return .problem(
                "library",
                "\(library) has no library, but had the library \(history) before",
                "mount its volume, name another --library, or begin a new one with `safelight up --new-library`"
            )
        }
        guard let status = Self.status(library) else {
            return .problem(
                "library",
                "\(library) cannot be opened: \(Self.reason)",
                "mount it, or name the library with --library; `safelight up` creates a new one"
            )
        }
        guard access(library, X_OK) == 0 else {
            return .problem(
                "library",
                "this user cannot enter \(library), which belongs to user \(status.st_uid)",
                "run this as that user"
            )
        }
        guard access(file, F_OK) == 0 else {
            return .problem("library", "\(library) has no database", "name the library with --library")
        }
        guard access(library, R_OK | W_OK | X_OK) == 0, access(file, R_OK | W_OK) == 0 else {
            if errno == EROFS {
                let text = "\(library) is on a filesystem that is mounted read-only"
                return .problem("library", text, "mount it for writing")
            }
            return .problem(
                "library",
                "this user cannot write to \(library), which belongs to user \(status.st_uid)",
                "run the services and this command as that user"
            )
        }
        guard status.st_mode & 0o022 == 0 else {
            return .warning("library", "other users can write to \(library)", "chmod go-w \(library)")
        }
        return .ok("library", "\(library) exists and is writable")
    }

    private var disk: [Finding] {
        guard let space = Self.space(library) else { return [] }
        let text = "\(QuantityFormatter.bytes(space.free)) free of \(QuantityFormatter.bytes(space.total))"
        if space.free < Self.problemSpace {
            return [.problem("disk", "\(text): writes are refused when it is used up", "free some space")]
        }
        if space.free < Self.warningSpace || space.free < space.total / 50 {
            return [.warning("disk", text, "free some space before the next import")]
        }
        return [.ok("disk", text)]
    }

    private var keyFolder: [Finding] {
        guard let keys, Self.status(keys.path) != nil else { return [.ok("keys", "none; there is no network access")] }
        var findings: [Finding] = []
        for name in ["server.key_secret"] {
            guard let status = Self.status("\(keys.path)/\(name)") else { continue }
            if status.st_mode & 0o077 != 0 {
                findings.append(
                    .problem(
                        "keys",
                        "other users can read \(keys.path)/\(name)",
                        "chmod 600 it; if it may have been read, create new keys with `safelight keys server`"
                    )
                )
            } else if status.st_uid != geteuid() {
                findings.append(
                    .warning("keys", "\(name) belongs to user \(status.st_uid)", "run the services as that user")
                )
            }
        }
        return findings.isEmpty ? [.ok("keys", "the permissions of \(keys.path) are correct")] : findings
    }

    // MARK: Clock

    private var clock: Finding {
        guard now > Self.earliest else {
            return .problem(
                "clock",
                "the time is \(QuantityFormatter.time(now))",
                "set the clock; changes get wrong dates"
            )
        }
        return .ok("clock", QuantityFormatter.time(now))
    }

    // MARK: Locks

    private var locks: [Finding] {
        let held = Self.heldLocks()
        var files = ["\(library)/lock"]
        var sockets: [String: String] = [:]
        for name in EndpointName.allCases {
            guard let path = try? run.address(of: name).path else { continue }
            files.append(path + ".lock")
            sockets[path + ".lock"] = path
        }
        return files.compactMap { file in
            guard let status = Self.status(file) else { return nil }
            guard let holders = held[status.st_ino] else { return .ok("lock", "\(file) is not locked") }
            guard let pid = Self.holder(file), holders.contains(pid) else {
                // The lock may be on a file of another filesystem, or the process in another container.
                return .ok("lock", "\(file) may be locked by a process of another container; see `fuser \(file)`")
            }
            if let socket = sockets[file], Self.status(socket) == nil {
                return .problem(
                    "socket",
                    "\(socket) was deleted, so nobody can connect to the service that runs as process \(pid)",
                    "end the services and start them again"
                )
            }
            guard kill(pid, 0) == 0 || errno == EPERM else {
                return .warning(
                    "lock",
                    "\(file) is locked for process \(pid), which has ended: one of its child processes is still running",
                    "find it with `fuser \(file)` and end it"
                )
            }
            return .ok("lock", "\(file) is locked by process \(pid)")
        }
    }

    /// Returns the process that wrote its number into a lock file; nil if there is none or the file cannot be read.
    private static func holder(_ file: String) -> Int32? {
        guard let bytes = try? InputFile.read(file, limit: 16) else { return nil }
        return Int32(String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self))
    }

    /// Returns the running process that has locked a file; nil if it cannot be determined.
    private static func process(locking file: String) -> Int32? {
        guard let status = Self.status(file), let pid = holder(file), heldLocks()[status.st_ino]?.contains(pid) == true,
            kill(pid, 0) == 0 || errno == EPERM
        else { return nil }
        return pid
    }

    /// Returns the processes that hold locks, by inode, from `/proc/locks`, so that the check takes no lock itself.
    /// Files of several filesystems can have the same inode number, and the device in `/proc/locks` is not that of
    /// `stat` on all of them; a lock is certain if the number in the lock file is among the processes.
    private static func heldLocks() -> [ino_t: Set<Int32>] {
        guard let bytes = try? InputFile.read("/proc/locks", limit: 1 << 20) else { return [:] }
        var held: [ino_t: Set<Int32>] = [:]
        for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") where !line.contains("->") {
            let words = line.split(separator: " ")
            guard words.count > 5, words[1] == "FLOCK", let pid = Int32(words[4]),
                let inode = words[5].split(separator: ":").last.flatMap({ ino_t($0) })
            else { continue }
            held[inode, default: []].insert(pid)
        }
        return held
    }

    // MARK: System calls

    private static var reason: String { String(cString: strerror(errno)) }

    private static func status(_ path: String) -> stat? {
        var status = stat()
        return stat(path, &status) == 0 ? status : nil
    }

    /// Returns the free and total space of the filesystem in bytes; nil if it cannot be read.
    static func space(_ path: String) -> (free: Int64, total: Int64)? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        let block = Int64(clamping: status.f_frsize)
        func bytes(_ blocks: UInt) -> Int64 {
            let (bytes, overflow) = Int64(clamping: blocks).multipliedReportingOverflow(by: block)
            return overflow ? .max : bytes
        }
        return (bytes(UInt(status.f_bavail)), bytes(UInt(status.f_blocks)))
    }
}
