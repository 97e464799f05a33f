import Foundation
import TestSupport
import Testing

/// The tour of `Shared/docs/tour.md`: its commands print what the page shows.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct TourTests {
    /// A command, and the lines below it.
    private struct Step {
        var command: String
        var expected: [String] = []
    }

    private static func steps() throws -> [Step] {
        let page = try String(contentsOfFile: TestPaths.package + "/Shared/docs/tour.md", encoding: .utf8)
        var steps: [Step] = []
        var isOpen = false
        for line in page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if line.hasPrefix("```") {
                isOpen = line == "```console"
            } else if isOpen, line.hasPrefix("$ ") {
                steps.append(Step(command: String(line.dropFirst(2))))
            } else if isOpen, line.hasPrefix("> ") {
                steps[steps.count - 1].command += "\n" + line.dropFirst(2)
            } else if isOpen {
                steps[steps.count - 1].expected.append(line)
            }
        }
        return steps
    }

    /// Returns true if lines match: `...` matches any text, and in a line of its own any lines.
    private static func matches(_ lines: ArraySlice<String>, _ expected: ArraySlice<String>) -> Bool {
        guard let first = expected.first else { return lines.isEmpty }
        if first == "..." {
            return (lines.startIndex...lines.endIndex).contains { matches(lines[$0...], expected.dropFirst()) }
        }
        guard let line = lines.first else { return false }
        let parts = first.components(separatedBy: "...").map { NSRegularExpression.escapedPattern(for: $0) }
        let pattern = "^" + parts.joined(separator: ".*") + "$"
        return line.range(of: pattern, options: .regularExpression) != nil
            && matches(lines.dropFirst(), expected.dropFirst())
    }

    @Test func `the tour prints what the page shows`() throws {
        let services = try SafelightFixture("tour")
        try services.start()
        var environment = services.environment
        environment["PATH"] = TestPaths.executables + ":" + (TestEnvironment.text("PATH") ?? "/usr/bin:/bin")
        environment.merge(PythonPackage.environment) { $1 }
        environment["PYTHONDONTWRITEBYTECODE"] = "1"
        _ = try Needed.python("zmq")
        let steps = try Self.steps()
        #expect(steps.count > 20)
        // One shell runs them all, so that its variables last; a line that no program prints is between the outputs.
        let mark = "=== the next command ==="
        let script = steps.map { "\($0.command)\nprintf '%s\\n' '\(mark)'" }.joined(separator: "\n")
        let shell = "set -e\ncd '\(services.folder.path)'\n" + script
        let run = try RunningProgram.run("/bin/bash", ["-c", shell], environment: environment, seconds: 120)
        #expect(run.status == 0, "\(run.errors)\n\(run.output.suffix(1000))")
        let outputs = run.output.components(separatedBy: mark + "\n")
        for (step, output) in zip(steps, outputs) {
            let lines = output.split(separator: "\n").map { String($0) }
            let isAsShown = Self.matches(lines[...], step.expected[...])
            let expected = step.expected.joined(separator: "\n")
            #expect(isAsShown, "$ \(step.command)\n\(output)\nis not as shown:\n\(expected)")
        }
        #expect(services.stop() == [])
    }
}
