import Glibc
import Messaging
import Synchronization

/// The disk cache: finished pictures as files, within a budget of bytes; what was used longest ago goes first.
///
/// A file appears under its name by a rename, so it is whole or it is not there; what the power cut spoils anyway is
/// found by its checksum and counts as a miss. Nothing here is worth an fsync: every picture can be made again. The
/// accounting is kept in memory and read back from the files at start, so it cannot drift from the disk.
final class RenditionStore: Sendable {
    let root: String
    private let state: Mutex<State>

    private struct State {
        var accounting: LeastRecent<RenditionKey>
        var temporaries: UInt64 = 0
        var damaged = 0
        var evicted = 0
    }

    /// Opens the cache and brings it below its budget.
    ///
    /// The caller holds the lock that keeps other processes out of the folder: temporary files of an earlier run are
    /// removed.
    ///
    /// - Parameters:
    ///   - root: the folder, made where there is none
    ///   - budget: bytes that the files may take, counted in whole blocks of the disk
    init(root: String, budget: Int64) throws(CacheError) {
        self.root = root
        try Self.makeFolder(root)
        var found: [(key: RenditionKey, cost: Int64, used: Int64)] = []
        for folder in Self.folders(of: root) {
            for name in Self.names(in: folder.path) {
                let path = "\(folder.path)/\(name)"
                guard let key = RenditionKey(name), name.hasPrefix(folder.prefix), let status = Self.status(path) else {
                    // A temporary file that a kill left behind, or something that is not ours to serve.
                    unlink(path)
                    continue
                }
                found.append((key, status.cost, status.used))
            }
        }
        found.sort { ($0.used, $0.key.text) < ($1.used, $1.key.text) }
        var accounting = LeastRecent<RenditionKey>(budget: budget)
        for entry in found {
            for gone in accounting.insert(entry.key, cost: entry.cost) { unlink(Self.path(root, gone)) }
        }
        self.state = Mutex(State(accounting: accounting))
    }

    /// The picture, where it is held; a damaged file is removed and counts as not held.
    func rendition(_ key: RenditionKey) -> StoredRendition? {
        guard state.withLock({ $0.accounting.touch(key) }) else { return nil }
        let path = Self.path(root, key)
        if let file = Self.read(path), let rendition = RenditionFile.decode(file, key: key) { return rendition }
        state.withLock { state in
            // Another request may have put it back in the meantime; then its file is judged at its next use.
            guard state.accounting.remove(key) != nil else { return }
            state.damaged += 1
            unlink(path)
        }
        return nil
    }

    /// Notes that the picture was served from memory, so that it does not go first on the disk.
    func touch(_ key: RenditionKey) {
        // The file's time as well, so that the order of use is the same after a restart.
        if state.withLock({ $0.accounting.touch(key) }) { utimensat(AT_FDCWD, Self.path(root, key), nil, 0) }
    }

    /// Keeps a picture. A full or failing disk only costs the cache its use.
    ///
    /// - Returns: why it could not be kept, for the log; nil where it was, or where it is larger than the whole budget.
    func insert(_ rendition: StoredRendition, _ key: RenditionKey) -> String? {
        let file = RenditionFile.encode(rendition, key: key)
        let cost = Self.blocks(Int64(file.count))
        guard state.withLock({ $0.accounting.fits(cost) }) else { return nil }
        let path = Self.path(root, key)
        let number = state.withLock { state in
            state.temporaries += 1
            return state.temporaries
        }
        let temporary = "\(path).\(number).part"
        if let problem = Self.write(file, to: temporary, key: key, root: root) {
            unlink(temporary)
            return problem
        }
        return state.withLock { state in
            guard rename(temporary, path) == 0 else {
                let problem = errno
                unlink(temporary)
                return "rename \(temporary): \(String(cString: strerror(problem)))"
            }
            for gone in state.accounting.insert(key, cost: cost) {
                unlink(Self.path(root, gone))
                state.evicted += 1
            }
            return nil
        }
    }

    /// What it holds and what happened to it.
    var figures: (count: Int, bytes: Int64, damaged: Int, evicted: Int) {
        state.withLock { ($0.accounting.count, $0.accounting.total, $0.damaged, $0.evicted) }
    }

    // MARK: Names

    /// The folders that hold files, each with the beginning of the names in it.
    static func folders(of root: String) -> [(path: String, prefix: String)] {
        let digits = Array("0123456789abcdef")
        return digits.flatMap { first in
            digits.map { second in ("\(root)/\(first)/\(second)", "\(first)\(second)") }
        }
    }

    /// Two levels of sixteen folders each, so that none holds more than some thousands of names.
    static func path(_ root: String, _ key: RenditionKey) -> String {
        let digits = Array(key.text.prefix(2))
        return "\(root)/\(digits[0])/\(digits[1])/\(key.text)"
    }

    /// What a file takes on the disk.
    static func blocks(_ bytes: Int64) -> Int64 { (bytes + 4095) / 4096 * 4096 }
}

/// Why the cache's folder cannot be used.
struct CacheError: Error, Sendable, CustomStringConvertible {
    let description: String
}

// MARK: - The system's calls

extension RenditionStore {
    private static let largestFile: Int64 = 256 << 20

    private static func makeFolder(_ path: String) throws(CacheError) {
        if mkdir(path, 0o750) == 0 || errno == EEXIST { return }
        throw CacheError(description: "the cache folder \(path) cannot be made: \(String(cString: strerror(errno)))")
    }

    static func names(in folder: String) -> [String] {
        guard let stream = opendir(folder) else { return [] }
        defer { closedir(stream) }
        var names: [String] = []
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    /// Blocks taken and the time of the last use, in microseconds; nil for what is no regular file.
    private static func status(_ path: String) -> (cost: Int64, used: Int64)? {
        var status = stat()
        guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { return nil }
        let used = Int64(status.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000_000).partialValue
        return (blocks(Int64(status.st_size)), used &+ Int64(status.st_mtim.tv_nsec / 1000))
    }

    /// The whole file; where it is for use, its time is set to now: the order of use survives a restart.
    static func read(_ path: String, isUse: Bool = true) -> Bytes? {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var status = stat()
        guard fstat(file, &status) == 0, Int64(status.st_size) <= largestFile else { return nil }
        if isUse { futimens(file, nil) }
        return Bytes(unsafeUninitializedCapacity: Int(status.st_size)) { buffer, used in
            while used < buffer.count {
                let count = Glibc.read(file, buffer.baseAddress?.advanced(by: used), buffer.count - used)
                if count > 0 { used += count } else if count == 0 || errno != EINTR { break }
            }
        }
    }

    /// Writes a new file, with its folders; why it could not be written.
    private static func write(_ bytes: Bytes, to path: String, key: RenditionKey, root: String) -> String? {
        let flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC
        var file = open(path, flags, 0o640)
        if file < 0, errno == ENOENT {
            let digits = Array(key.text.prefix(2))
            mkdir("\(root)/\(digits[0])", 0o750)
            mkdir("\(root)/\(digits[0])/\(digits[1])", 0o750)
            file = open(path, flags, 0o640)
        }
        guard file >= 0 else { return "open \(path): \(String(cString: strerror(errno)))" }
        defer { close(file) }
        var done = 0
        while done < bytes.count {
            let count = bytes[done...].withUnsafeBytes { Glibc.write(file, $0.baseAddress, $0.count) }
            if count > 0 {
                done += count
            } else if errno != EINTR {
                return "write \(path): \(String(cString: strerror(errno)))"
            }
        }
        return nil
    }
}
