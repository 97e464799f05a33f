import SystemPackage
import TestSupport
import Testing

@testable import CommandLine

@Suite(.timeLimit(.minutes(1)))
struct InputLineReaderTests {
    @Test func `a reader can be released before all lines are consumed`() async throws {
        let folder = try TemporaryFolder("lines")
        // These are more lines than are read ahead. Dispatch must not trap if the consumer leaves some of them.
        let path = try folder.write(String(repeating: "line\n", count: 200).utf8, to: "lines")
        for try await line in try InputLineReader(path, maxLineBytes: 100).lines() {
            #expect(line == Array("line".utf8))
            break
        }
    }

    @Test func `all lines are read, and long ones are cut`() async throws {
        let folder = try TemporaryFolder("lines")
        let path = try folder.write("one\n\ntoo long\nlast".utf8, to: "lines")
        let reader = InputLineReader(path, maxLineBytes: 4)
        var lines: [String] = []
        for try await line in try reader.lines() {
            lines.append(String(decoding: line, as: UTF8.self))
            reader.finishLine()
        }
        #expect(lines == ["one", "", "too l", "last"])
    }

    @Test func `lines of standard input are read, also long ones and a last one without a line end`() throws {
        let folder = try TemporaryFolder("lines")
        let long = String(repeating: "x", count: 200_000)
        let path = try folder.write("one\n\n\(long)\nlast".utf8, to: "lines")
        let file = try FileDescriptor.open(FilePath(path), .readOnly)
        let input = StandardInput(file)
        try file.closeAfter {
            for line in ["one", "", long, "last", nil, nil] { try #expect(input.line() == line) }
        }
    }

    @Test func `a read error of standard input is thrown, not treated as its end`() throws {
        let folder = try FileDescriptor.open(FilePath("/"), .readOnly)
        try folder.closeAfter {
            let error = #expect(throws: CommandFailure.self) { try StandardInput(folder).line() }
            #expect(error?.name == "not_read")
        }
    }
}
