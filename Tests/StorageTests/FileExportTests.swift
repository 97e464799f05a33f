import Glibc
import TestSupport
import Testing

@testable import Storage

/// Tests of copying resources to files outside the store.
@Suite(.timeLimit(.minutes(1)))
struct FileExportTests {
    private let folder: TemporaryFolder
    private let store: ResourceStore
    private let content = (0..<(FileHash.stepBytes + 1000)).map { UInt8(truncatingIfNeeded: $0 &* 31) }

    init() throws {
        folder = try TemporaryFolder("storage")
        store = try ResourceStore(root: folder.path + "/resources")
        mkdir(folder.path + "/out", 0o700)
    }

    private var path: String { folder.path + "/out/photo.jpg" }

    /// Returns the names of all files in the folder, hidden ones included.
    private func names() throws -> [String] { try DirectoryOperations.names(in: folder.path + "/out").sorted() }

    /// Begins an export and copies its first step.
    private func begin(replaces: Bool = false) throws -> FileExport {
        let digest = try store.put(bytes: content).digest
        let export = try FileExport(of: try store.open(digest), to: path, replaces: replaces)
        #expect(try export.next())
        return export
    }

    private func read() throws -> [UInt8] { try DurableFile.open(path).readAll(limit: Int64(content.count)) }

    @Test(.spec("T-32")) func `a process that is killed during an export leaves nothing in the folder`() throws {
        for replaces in [false, true] {
            let export = try begin(replaces: replaces)
            // A killed process runs no code, so it would leave the current content of the folder.
            #expect(try names() == [])
            export.cancel()
            #expect(try names() == [])
        }
    }

    @Test func `a file is complete when it appears, and replaces another one only if this is allowed`() throws {
        var export = try begin()
        #expect(try export.next() == false)
        try export.finish()
        #expect(try names() == ["photo.jpg"])
        #expect(try read() == content)
        var status = stat()
        #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o644 & ~Self.mask)

        #expect(throws: StorageError.self) { try begin() }
        unlink(path)
        export = try begin()
        _ = try export.next()
        folder.overwrite("out/photo.jpg", [1, 2, 3], at: 0)
        // The file was created meanwhile.
        #expect(throws: StorageError.self) { try export.finish() }
        #expect(try read() == [1, 2, 3])
        export = try begin(replaces: true)
        _ = try export.next()
        try export.finish()
        #expect(try names() == ["photo.jpg"])
        #expect(try read() == content)
    }

    private static var mask: mode_t {
        let mask = umask(0o022)
        umask(mask)
        return mask
    }
}
