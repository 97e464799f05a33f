import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct InputLineReaderTests {
    @Test func `a reader is released while lines are left`() async throws {
        let folder = try TemporaryFolder("lines")
        // More than are read ahead. Without a consumer that takes them all, Dispatch must not stop the program.
        let path = try folder.write(String(repeating: "line\n", count: 200).utf8, to: "lines")
        for try await line in try InputLineReader(path, longest: 100).lines() {
            #expect(line == Array("line".utf8))
            break
        }
    }

    @Test func `all lines are read, and long ones are cut`() async throws {
        let folder = try TemporaryFolder("lines")
        let path = try folder.write("one\n\ntoo long\nlast".utf8, to: "lines")
        let reader = InputLineReader(path, longest: 4)
        var lines: [String] = []
        for try await line in try reader.lines() {
            lines.append(String(decoding: line, as: UTF8.self))
            reader.done()
        }
        #expect(lines == ["one", "", "too l", "last"])
    }

    @Test func `the lines of standard input are read in pieces, and the last one without its end`() throws {
        let folder = try TemporaryFolder("lines")
        let long = String(repeating: "x", count: 200_000)
        let path = try folder.write("one\n\n\(long)\nlast".utf8, to: "lines")
        let file = try FileDescriptor.open(FilePath(path), .readOnly)
        let input = StandardInput(file)
        try file.closeAfter {
            for line in ["one", "", long, "last", nil, nil] { try #expect(input.line() == line) }
        }
    }

    @Test func `standard input that cannot be read is an error, and not its end`() throws {
        let folder = try FileDescriptor.open(FilePath("/"), .readOnly)
        try folder.closeAfter {
            let error = #expect(throws: CommandFailure.self) { try StandardInput(folder).line() }
            #expect(error?.name == "not_read")
        }
    }
}
