import Glibc
import SystemPackage

/// A file that is written in pieces under a temporary name and renamed when it is complete.
struct OutputFileWriter {
    private let path: FilePath
    private let partial: FilePath
    private let file: FileDescriptor

    init(_ path: String) throws {
        self.path = FilePath(path)
        self.partial = FilePath(path + ".\(getpid()).part")
        do {
            file = try FileDescriptor.open(
                partial,
                .writeOnly,
                options: [.create, .truncate],
                permissions: [.ownerReadWrite, .groupRead, .otherRead]
            )
        } catch {
            throw CommandFailure(message: "\(path) cannot be written: \(error)", name: "not_written")
        }
    }

    func write(_ bytes: [UInt8]) throws {
        do {
            try file.writeAll(bytes)
        } catch {
            abandon()
            throw CommandFailure(message: "\(path) cannot be written: \(error)", name: "not_written")
        }
    }

    func finish() throws {
        try? file.close()
        guard rename(partial.string, path.string) == 0 else {
            let problem = Errno(rawValue: errno)
            unlink(partial.string)
            throw CommandFailure(message: "\(path) cannot be written: \(problem)", name: "not_written")
        }
    }

    /// Closes and deletes the incomplete file.
    func abandon() {
        try? file.close()
        unlink(partial.string)
    }
}
