import CProcess
import Glibc

/// Operations on paths instead of open files.
enum DirectoryOperations {
    /// Creates a folder with mode 0750 if it does not exist; returns true if it was created.
    static func create(_ path: String) throws(StorageError) -> Bool {
        if mkdir(path, 0o750) == 0 { return true }
        let problem = errno
        guard problem == EEXIST else { throw .system(problem, "create folder \(path)") }
        return false
    }

    static func sync(_ path: String) throws(StorageError) {
        try Descriptor(opening: path, O_RDONLY | O_DIRECTORY).sync()
    }

    /// Returns the names in a folder, without `.` and `..`, in no particular order.
    static func names(in path: String) throws(StorageError) -> [String] {
        guard let folder = opendir(path) else { throw .system(errno, "list \(path)") }
        defer { closedir(folder) }
        var names: [String] = []
        while let entry = readdir(folder) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) { pointer in
                pointer.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != ".", name != ".." { names.append(name) }
        }
        return names
    }

    static func status(_ path: String) throws(StorageError) -> stat {
        var status = stat()
        guard lstat(path, &status) == 0 else { throw .system(errno, "stat \(path)") }
        return status
    }

    static func removeFile(_ path: String) throws(StorageError) {
        guard unlink(path) == 0 else { throw .system(errno, "remove \(path)") }
    }

    /// Renames without replacing; returns `false` if the target exists.
    static func renameExclusively(_ from: String, to path: String) throws(StorageError) -> Bool {
        if safelight_rename_exclusively(from, path) == 0 { return true }
        let problem = errno
        guard problem == EEXIST else { throw .system(problem, "rename \(from) to \(path)") }
        return false
    }
}
