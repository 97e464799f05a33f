import Foundation
import JSONValue
import TestSupport
import Testing

/// The commands in README.md and Shared/docs work as the pages describe.
///
/// A block that begins with ```sh is run, the blocks of one page in their order in one shell. A block that begins with
/// ```console is for reading; its `safelight` commands are checked against the options that the programs have.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct DocumentTests {
    private static let pages = ["README.md"] + Self.documents.map { "Shared/docs/\($0)" }

    private static let documents: [String] = {
        let names = try? FileManager.default.contentsOfDirectory(atPath: TestPaths.package + "/Shared/docs")
        return (names ?? []).filter { $0.hasSuffix(".md") }.sorted()
    }()

    private static func text(_ page: String) throws -> String {
        try String(contentsOfFile: TestPaths.package + "/" + page, encoding: .utf8)
    }

    /// Returns the contents of a page's code blocks in some languages.
    private static func blocks(_ languages: Set<String>, of page: String) throws -> [String] {
        var blocks: [String] = []
        var open: [Substring]?
        for line in try text(page).split(separator: "\n", omittingEmptySubsequences: false) {
            if let lines = open {
                if line == "```" {
                    if let first = lines.first, languages.contains(String(first.dropFirst(3))) {
                        blocks.append(lines.dropFirst().joined(separator: "\n"))
                    }
                    open = nil
                } else {
                    open = lines + [line]
                }
            } else if line.hasPrefix("```") {
                open = [line]
            }
        }
        return blocks
    }

    private static let executedPages = pages.filter { page in (try? blocks(["sh"], of: page))?.isEmpty == false }

    /// Photos for all pages; painting them takes seconds.
    private static let photos = Result {
        let folder = try TemporaryFolder("document-photos")
        let run = try RunningProgram.run("safelight", ["sample-photos", folder.file("photos")])
        try #require(run.status == 0, "\(run.errors)")
        return folder
    }

    @Test func `the pages that show commands have blocks that are run`() {
        for page in ["README.md", "fetching.md", "editing.md", "images.md", "metadata.md", "feed.md", "operations.md"] {
            #expect(Self.executedPages.contains { $0.hasSuffix(page) }, "\(page)")
        }
    }

    @Test(arguments: executedPages)
    func `the commands of a page run in their order`(_ page: String) throws {
        let services = try SafelightFixture("documents")
        let home = services.folder.file("home")
        try FileManager.default.createDirectory(atPath: home, withIntermediateDirectories: true)
        try FileManager.default.copyItem(atPath: Self.photos.get().file("photos"), toPath: home + "/Pictures")
        // A page that starts the services itself must find none.
        let blocks = try Self.blocks(["sh"], of: page)
        let startsServices = blocks.contains { $0.contains("safelight up") }
        if !startsServices {
            try services.start()
            try #require(try services.safelight(["import", home + "/Pictures"]).status == 0)
        }
        var environment = services.environment
        environment["HOME"] = home
        let script = """
            set -euo pipefail
            cd "$HOME"
            stop() { status=$?; for job in $(jobs -p); do kill -TERM "$job" 2>/dev/null || true; done; wait || true; exit $status; }
            trap stop EXIT
            set -x
            \(blocks.joined(separator: "\n"))
            """
        let began = Date()
        let run = try RunningProgram.run("/bin/bash", ["-c", script], environment: environment, seconds: 120)
        TestPaths.report("\(page): \(blocks.count) blocks in \(Int(Date().timeIntervalSince(began))) s")
        #expect(run.status == 0, "\(page): \(run.errors.suffix(4000))\n\(run.output.suffix(1000))")
        if !startsServices { #expect(services.stop() == []) }
    }

    // MARK: Options

    /// A command of a program with the names of its options, as `--experimental-dump-help` gives it.
    private struct Command {
        let flags: Set<String>
        let subcommands: [String: Command]
        /// The name of the subcommand that runs if none is named.
        let defaultSubcommand: String?
        let isLeaf: Bool

        init(_ json: JSON) {
            let arguments = json["arguments"]?.arrayValue ?? []
            // Those of the argument parser itself.
            var flags: Set<String> = ["--help", "--version", "--generate-completion-script"]
            for name in arguments.flatMap({ $0["names"]?.arrayValue ?? [] }) {
                guard let text = name["name"]?.stringValue else { continue }
                flags.insert(name["kind"] == "short" ? "-\(text)" : "--\(text)")
            }
            let commands = (json["subcommands"]?.arrayValue ?? []).map {
                ($0["commandName"]?.stringValue ?? "", Command($0))
            }
            self.subcommands = Dictionary(commands, uniquingKeysWith: { first, _ in first })
            self.flags = flags
            defaultSubcommand = json["defaultSubcommand"]?.stringValue
            isLeaf = subcommands.keys.filter { $0 != "help" }.isEmpty
        }

        /// Returns the problem with the words of a command line after the program's name; nil if there is none.
        func problem(_ words: [String]) -> String? {
            if !isLeaf, let first = words.first, !first.hasPrefix("-"), let command = subcommands[first] {
                return command.problem(Array(words.dropFirst()))
            }
            if let main = defaultSubcommand.flatMap({ subcommands[$0] }) { return main.problem(words) }
            if !isLeaf, let first = words.first, first.wholeMatch(of: /[a-z][a-z-]*/) != nil {
                return "there is no subcommand \(first)"
            }
            return words.first { $0.wholeMatch(of: /--[a-z][a-z-]*/) != nil && !flags.contains($0) }
                .map { "there is no option \($0)" }
        }
    }

    private static func programs() throws -> [String: Command] {
        var programs: [String: Command] = [:]
        for name in ["safelight", "catalog", "thumbnailer", "editor", "change-broker"] {
            let dump = try RunningProgram.run(name, ["--experimental-dump-help"])
            programs[name] = try Command(#require(try JSON(parsing: dump.output)["command"]))
        }
        return programs
    }

    /// Returns the command lines of a page that call one of the programs: in its blocks, and in `code` inside its text.
    private static func commandLines(of page: String) throws -> [String] {
        let blocks = try blocks(["sh", "console"], of: page).joined(separator: "\n")
            .replacing("\\\n", with: " ")
        let inText = try text(page).matches(of: /`([^`\n]+)`/).map { String($0.1) }
        let names = #/(?:^|[|;&(]\s*|tools\s+)((?:safelight|catalog|thumbnailer|editor|change-broker) [^|;&)$]*)/#
        return (blocks.split(separator: "\n").map(String.init) + inText).flatMap { line in
            // Quoted text and variables are always values.
            let bare = line.replacing(#/'[^']*'|"[^"]*"|\$\w+/#, with: "TEXT")
            return bare.matches(of: names).map { String($0.1) }
        }
    }

    @Test func `every subcommand and option in the pages exists`() throws {
        let programs = try Self.programs()
        var count = 0
        for page in Self.pages where !page.hasSuffix("protocol.md") {
            for line in try Self.commandLines(of: page) {
                let words = line.split(separator: " ").map(String.init).prefix {
                    !$0.hasPrefix("#") && !$0.hasPrefix(">")
                }
                guard let name = words.first, let program = programs[name] else { continue }
                let problem = program.problem(Array(words.dropFirst()))
                #expect(problem == nil, "\(page): \(line): \(problem ?? "")")
                count += 1
            }
        }
        #expect(count > 60, "only \(count) command lines were found")
    }
}
