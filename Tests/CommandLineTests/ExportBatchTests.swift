import JSONValue
import Foundation
import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

/// The syncing of exported files.
@Suite(.timeLimit(.minutes(1)))
struct ExportBatchTests {
    private let folder: TemporaryFolder
    private let steps = AwaitableValue<[String]>([])

    init() throws { folder = try TemporaryFolder("batch") }

    private static func names(in path: String) -> [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []).sorted()
    }

    /// Returns functions that record each call, with the names in the folder.
    private func sync(failing failure: Errno? = nil) -> FileSync {
        func call(_ name: String) -> FileSync.Call {
            { [steps, path = folder.path] _ in
                let names = Self.names(in: path).map { $0.hasSuffix(".part") ? "part" : $0 }
                steps.withLock { $0.append(([name] + names).joined(separator: " ")) }
                if let failure { throw failure }
            }
        }
        return FileSync(content: call("content"), names: call("names"), filesystem: call("filesystem"))
    }

    private func item(_ name: String, _ sync: FileSync, isSynced: Bool) throws -> ExportBatch.Item {
        let writer = try OutputFileWriter(folder.file(name), replaces: false, sync: sync)
        try writer.write(Array(name.utf8))
        try writer.close(isSynced: isSynced)
        return ExportBatch.Item(files: [.init(writer: writer, result: (json: .string(name), line: name))])
    }

    /// Exports three files, and returns the progress.
    private func export(with sync: FileSync) throws -> ProgressReporter {
        var progress = ProgressReporter(output: Output(json: true))
        progress.begin(total: 3)
        var batch = ExportBatch(of: folder.path, sync: sync)
        for name in ["a", "b", "c"] {
            batch.append(try item(name, sync, isSynced: batch.syncsEachFile), &progress)
        }
        batch.flush(&progress)
        return progress
    }

    @Test func `small files are synced together before they are renamed, and the folder after that`() throws {
        let progress = try export(with: sync())
        #expect(steps.current == ["filesystem part part part", "names a b c"])
        #expect(progress.done == 3 && progress.failed == 0)
        #expect(try String(contentsOfFile: folder.file("b"), encoding: .utf8) == "b")
    }

    @Test func `each file is synced alone if the filesystem cannot be synced as a whole`() throws {
        var sync = sync()
        sync.filesystem = nil
        let progress = try export(with: sync)
        #expect(steps.current == ["content part", "content part part", "content part part part", "names a b c"])
        #expect(progress.done == 3 && progress.failed == 0)
    }

    @Test func `files that cannot be synced are deleted`() throws {
        let progress = try export(with: sync(failing: .ioError))
        #expect(steps.current == ["filesystem part part part"])
        #expect(progress.done == 3 && progress.failed == 3)
        #expect(Self.names(in: folder.path).isEmpty)
    }

    @Test func `the system syncs files, folders and filesystems`() throws {
        let path = try folder.write(Array("a".utf8), to: "a")
        let sync = FileSync.system
        let filesystem = try #require(sync.filesystem)
        let opened = try #require(FileSync.folder(of: FilePath(path)))
        try opened.closeAfter {
            try filesystem(opened)
            try sync.names(opened)
        }
        let file = try FileDescriptor.open(path, .readOnly)
        try file.closeAfter { try sync.content(file) }
        let closed = FileDescriptor(rawValue: -1)
        for call in [sync.content, sync.names, filesystem] {
            #expect(throws: Errno.badFileDescriptor) { try call(closed) }
        }
    }
}
