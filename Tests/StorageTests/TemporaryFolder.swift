import Glibc

/// The folder of one test, removed at its end.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/safelight-storage-XXXXXX".utf8CString)
        let made = mkdtemp(&template) != nil
        precondition(made, "cannot make a temporary folder")
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit { Self.remove(path) }

    private static func remove(_ path: String) {
        // Links are not followed: one of the tests makes a link to the open files of this process.
        var status = stat()
        if lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFDIR, let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { remove("\(path)/\(name)") }
            }
            closedir(folder)
        }
        _ = Glibc.remove(path)
    }

    func overwrite(_ name: String, _ bytes: [UInt8], at offset: Int) {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT, 0o644)
        pwrite(file, bytes, bytes.count, off_t(offset))
        close(file)
    }
}
