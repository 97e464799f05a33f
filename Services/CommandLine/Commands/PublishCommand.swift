import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight publish`
struct PublishCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Publish many edits and follow each one until it is applied.",
        discussion: """
            `safelight edit` edits assets that are named on the command line. This command is for scripts.

            Each line is an edit as JSON: {"asset": "a01…", "adjustments": {"version": 1, "operations": [{"operation": \
            "exposure", "value": 0.5}]}}. Optional members: "id" (1 to 48 printable characters), "after" (the id of the \
            edit that must be applied first), "mode" ("replace" or "append"), "magick", "enhance", "engine", \
            "ifContentRevision", and "networkAccessAllowed", which --download adds to all lines; and in place of \
            "adjustments" one of "from", "step" and "revert".

            An edit is sent again until it is accepted. An accepted edit is applied exactly once, even if a service is \
            killed. A line without an id gets one derived from its content, its line number and --name, so publishing \
            the same file again continues where it stopped and applies nothing twice. To apply the same lines again, \
            use another --name.

            A line without "after" is applied after the previous line that edits the same asset, unless --no-chain is \
            given.

            Ctrl-C stops publishing and reports which edits were accepted and which were not; accepted edits are still \
            applied. Exit status: 0 if every edit was applied (with --until accepted: accepted), 3 if some failed or \
            publishing was stopped.
            """
    )

    @Argument(help: ArgumentHelp("File with JSON lines; - for standard input.", valueName: "file"))
    var file = "-"

    @Option(help: "Follow each edit until it is accepted or applied.")
    var until = Goal.applied

    @Option(help: "Name of this run, at most 64 bytes; separates runs with the same lines.")
    var name = ""

    @Flag(
        inversion: .prefixedNo,
        help: "Apply the edits of an asset one after another, in the order of the lines."
    )
    var chain = true

    @Option(parsing: .unconditional, help: "Maximum number of unfinished edits at a time, 1 to 1000.")
    var window = 500

    @Flag(name: .shortAndLong, help: "Print a line for each state of each edit.")
    var verbose = false

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.catalog, .editor] }

    func validate() throws {
        guard (1...1000).contains(window) else { throw ValidationError("--window must be a number from 1 to 1000") }
        guard name.utf8.count <= 64 else { throw ValidationError("--name must have at most 64 bytes") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let reader = InputLineReader(file, maxLineBytes: PublishedLine.maxBytes)
        let lines = try reader.lines()
        let publisher = try EditPublisher(library: library, until: until.publishGoal, window: window)
        let stop = StopRequest()
        let signals = StopSignals(stop)
        let reporter = PublishReporterActor(
            PublishReporter(output: output, isVerbose: verbose, goal: until.publishGoal)
        )
        let run = PublishRun(
            name: name,
            isChained: chain,
            mayDownload: downloads.download,
            reader: reader,
            publisher: publisher,
            reporter: reporter
        )
        let isStopped: Bool
        do {
            isStopped = try await run.run(lines, stop: stop)
        } catch {
            throw CommandFailure(error, after: await reporter.reached, of: await reporter.published, "published edit")
        }
        withExtendedLifetime(signals) {}
        try await reporter.finish(isStopped: isStopped)
        if await !reporter.isComplete || isStopped { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }
}

extension PublishCommand {
    /// ``PublishGoal`` as a command line argument.
    enum Goal: String, CaseIterable, ExpressibleByArgument {
        case accepted, applied

        var publishGoal: PublishGoal { self == .accepted ? .accepted : .applied }
    }
}
