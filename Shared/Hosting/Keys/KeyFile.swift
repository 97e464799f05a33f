import Glibc

/// Functions that read and write key files with checked permissions.
enum KeyFile {
    /// Reads a certificate.
    ///
    /// The file must belong to this user or root.
    ///
    /// - Parameter isSecret: true if other users must not have read permission; otherwise they only must not have write
    ///   permission
    static func read(_ path: String, isSecret: Bool, advice: String = "check the path") throws(KeyError) -> Certificate
    {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
        guard descriptor >= 0 else {
            if errno == ENOENT { throw .missing(path: path, advice: advice) }
            throw .failed(path: path, reason: errorText)
        }
        defer { _ = close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .failed(path: path, reason: errorText) }
        guard status.st_mode & S_IFMT == S_IFREG else { throw .unsafe(path: path, reason: "it is not a file") }
        guard status.st_uid == geteuid() || status.st_uid == 0 else {
            throw .unsafe(path: path, reason: "it belongs to user \(status.st_uid), not to \(geteuid())")
        }
        let forbidden: mode_t = isSecret ? 0o077 : 0o022
        guard status.st_mode & forbidden == 0 else {
            throw .unsafe(
                path: path,
                reason: isSecret
                    ? "others may read it; create new keys, or chmod 600 if nobody has read it"
                    : "others may write it; chmod go-w"
            )
        }
        var bytes = [UInt8](repeating: 0, count: Certificate.maxBytes + 1)
        var length = 0
        while length < bytes.count {
            let count = bytes.withUnsafeMutableBytes {
                Glibc.read(descriptor, $0.baseAddress?.advanced(by: length), $0.count - length)
            }
            guard count >= 0 else {
                if errno == EINTR { continue }
                throw .failed(path: path, reason: errorText)
            }
            if count == 0 { break }
            length += count
        }
        guard let text = String(validating: bytes.prefix(length), as: UTF8.self) else {
            throw .notACertificate(path: path, reason: "it is not UTF-8")
        }
        return try Certificate(text: text, path: path)
    }

    /// Writes a file atomically; an existing file is replaced only if `replacing` is true.
    static func write(_ certificate: Certificate, to path: String, replacing: Bool = false) throws(KeyError) {
        let mode: mode_t = certificate.secretKey == nil ? 0o644 : 0o600
        let partial = "\(path).\(getpid()).part"
        unlink(partial)
        let descriptor = open(partial, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode)
        guard descriptor >= 0 else { throw .failed(path: partial, reason: errorText) }
        var problem: String?
        let bytes = Array(certificate.text.utf8)
        if Glibc.write(descriptor, bytes, bytes.count) != bytes.count || fsync(descriptor) != 0 { problem = errorText }
        if close(descriptor) != 0, problem == nil { problem = errorText }
        if problem == nil {
            // link fails if the path exists; rename replaces it.
            if (replacing ? rename(partial, path) : link(partial, path)) != 0 { problem = errorText }
        }
        unlink(partial)
        if let problem { throw .failed(path: path, reason: problem) }
    }

    /// Creates a folder that only this user may enter, with its parents, and checks it.
    static func makeFolder(_ path: String) throws(KeyError) {
        guard path.hasPrefix("/") else { throw .failed(path: path, reason: "it is not an absolute path") }
        var folder = ""
        for part in path.split(separator: "/") {
            folder += "/" + part
            if mkdir(folder, 0o700) != 0, errno != EEXIST, errno != EROFS, errno != EACCES {
                throw .failed(path: folder, reason: errorText)
            }
        }
        try checkFolder(path)
    }

    /// Checks that a folder belongs to this user and is inaccessible to others.
    static func checkFolder(_ path: String) throws(KeyError) {
        var status = stat()
        guard lstat(path, &status) == 0 else {
            if errno == ENOENT {
                throw .missing(path: path, advice: "create it with: safelight keys server --keys \(path)")
            }
            throw .failed(path: path, reason: errorText)
        }
        guard status.st_mode & S_IFMT == S_IFDIR else { throw .unsafe(path: path, reason: "it is not a folder") }
        guard status.st_uid == geteuid() else {
            throw .unsafe(path: path, reason: "it belongs to user \(status.st_uid), not to \(geteuid())")
        }
        guard status.st_mode & 0o077 == 0 else {
            throw .unsafe(
                path: path,
                reason: "others may enter it (mode \(String(status.st_mode & 0o777, radix: 8))); chmod 700"
            )
        }
    }

    /// Returns the names in a folder, sorted; none if it does not exist. Hidden files are skipped.
    static func names(in path: String) throws(KeyError) -> [String] {
        guard let folder = opendir(path) else {
            if errno == ENOENT { return [] }
            throw .failed(path: path, reason: errorText)
        }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.hasPrefix(".") { continue }
            names.append(name)
            guard names.count <= KeyFolder.maxKeys * 2 else { throw .tooMany(path: path, limit: KeyFolder.maxKeys) }
        }
        return names.sorted()
    }

    static var errorText: String { String(cString: strerror(errno)) }
}
