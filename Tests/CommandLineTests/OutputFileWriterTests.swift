import Foundation
import Glibc
import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

/// Files that a command writes to a path of the user.
@Suite(.timeLimit(.minutes(1)))
struct OutputFileWriterTests {
    private let bytes = Array("new".utf8)

    private func content(_ path: String) throws -> String { try String(contentsOfFile: path, encoding: .utf8) }

    private func kind(_ path: String) -> mode_t {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0
    }

    private func files(_ folder: TemporaryFolder) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).sorted()
    }

    @Test func `a file appears when it is complete, and an unfinished one leaves nothing`() throws {
        let folder = try TemporaryFolder("writer")
        let path = try folder.write(Array("old".utf8), to: "a")
        let writer = try OutputFileWriter(path)
        try writer.write(bytes)
        #expect(try content(path) == "old")
        try writer.finish()
        #expect(try content(path) == "new")
        let abandoned = try OutputFileWriter(folder.file("b"))
        try abandoned.write(bytes)
        abandoned.abandon()
        #expect(try files(folder) == ["a"])
    }

    @Test func `a file is renamed after its bytes are synced, and then its folder is synced`() throws {
        let folder = try TemporaryFolder("writer")
        let path = folder.file("a")
        let steps = AwaitableValue<[String]>([])
        let sync = FileSync(
            content: { file in
                let size = try file.seek(offset: 0, from: .end)
                steps.withLock { $0.append("\(size) bytes") }
                #expect(access(path, F_OK) != 0)
            },
            names: { _ in
                steps.withLock { $0.append("names") }
                #expect(access(path, F_OK) == 0)
            }
        )
        let writer = try OutputFileWriter(path, sync: sync)
        try writer.write(bytes)
        try writer.finish()
        #expect(steps.current == ["\(bytes.count) bytes", "names"])
        #expect(try content(path) == "new")
    }

    @Test func `a file that cannot be synced is deleted`() throws {
        let folder = try TemporaryFolder("writer")
        let sync = FileSync(content: { _ in throw Errno.ioError }, names: { _ in })
        let writer = try OutputFileWriter(folder.file("a"), sync: sync)
        try writer.write(bytes)
        let failure = #expect(throws: CommandFailure.self) { try writer.finish() }
        #expect(failure?.name == "not_written")
        #expect(try files(folder).isEmpty)
    }

    @Test func `a file that appears meanwhile is not replaced if replacing is not allowed`() throws {
        let folder = try TemporaryFolder("writer")
        let path = folder.file("a")
        let writer = try OutputFileWriter(path, replaces: false)
        try writer.write(bytes)
        try folder.write(Array("mine".utf8), to: "a")
        #expect(throws: CommandFailure.self) { try writer.finish() }
        #expect(throws: CommandFailure.self) { try OutputFile.write(bytes, to: path, replaces: false) }
        try OutputFile.write(bytes, to: folder.file("b"), replaces: false)
        #expect(try content(path) == "mine" && content(folder.file("b")) == "new")
        #expect(try files(folder) == ["a", "b"])
    }

    @Test func `two writers of one path do not write into the same file`() throws {
        let folder = try TemporaryFolder("writer")
        let path = folder.file("a")
        let (first, second) = (try OutputFileWriter(path), try OutputFileWriter(path))
        try first.write(bytes)
        try second.write(Array("second".utf8))
        try first.finish()
        #expect(try content(path) == "new")
        try second.finish()
        #expect(try content(path) == "second")
        #expect(try files(folder) == ["a"])
    }

    @Test func `a pipe is written to and stays a pipe`() throws {
        let folder = try TemporaryFolder("writer")
        let pipe = folder.file("pipe")
        try #require(mkfifo(pipe, 0o600) == 0)
        let reader = try FileDescriptor.open(FilePath(pipe), .readOnly, options: .nonBlocking)
        try OutputFile.write(bytes, to: pipe)
        var read = [UInt8](repeating: 0, count: 16)
        let count = try read.withUnsafeMutableBytes { try reader.read(into: $0) }
        try reader.close()
        #expect(Array(read[..<count]) == bytes)
        #expect(try kind(pipe) == S_IFIFO && files(folder) == ["pipe"])
    }

    @Test func `the destination of a link is replaced, and the link remains`() throws {
        let folder = try TemporaryFolder("writer")
        let target = try folder.write(Array("old".utf8), to: "below/target")
        let link = folder.file("link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "below/target")
        try OutputFile.write(bytes, to: link)
        #expect(try content(target) == "new" && kind(link) == S_IFLNK && kind(target) == S_IFREG)
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.file("below")) == ["target"])
    }

    @Test func `a folder, a link without a destination and a path in a missing folder are errors`() throws {
        let folder = try TemporaryFolder("writer")
        let link = folder.file("link")
        try FileManager.default.createSymbolicLink(atPath: link, withDestinationPath: "nothing")
        for (path, reason) in [(folder.path, "folder"), (link, "link"), (folder.file("none/a"), "No such file")] {
            let error = #expect(throws: CommandFailure.self, "\(path)") { try OutputFile.write(bytes, to: path) }
            #expect(error?.name == "not_written" && error?.message.contains(reason) == true, "\(error as Any)")
        }
        #expect(try files(folder) == ["link"])
    }

    @Test func `unfinished files are deleted when the program is interrupted`() async throws {
        let folder = try TemporaryFolder("writer")
        let path = folder.file("film.mov")
        // The program below writes a part of the file and waits for the signal.
        await #expect(processExitsWith: .exitCode(128 + SIGTERM)) { [path = path as String] in
            let signals = UnfinishedFiles.removeAtSignals()
            let writer = try OutputFileWriter(path)
            try writer.write([1, 2, 3])
            kill(getpid(), SIGTERM)
            try await Task.sleep(for: .seconds(30))
            withExtendedLifetime(signals) {}
        }
        #expect(try files(folder).isEmpty)
    }
}
