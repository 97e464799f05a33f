import ArgumentParser
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// `safelight publish`
struct PublishCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "publish",
        abstract: "Publish many edits and follow each until it is applied.",
        discussion: """
            Each line is an edit as JSON: {"asset": "a01…", "adjustments": {"version": 1, "operations": [{"operation": \
            "exposure", "value": 0.5}]}}, and if you like "id" (1 to 48 printable characters), "after" (the id of the \
            edit that it comes after), "mode" ("replace" or "append") and "ifContentRevision".

            An edit is sent again until it is accepted; from then on it is carried out once, whatever is killed. A line \
            without an id gets one made of its content, its number and --name: the same file again goes on where it was \
            stopped, and does nothing twice. To apply the same lines again, give another --name.

            A line without "after" comes after the line before it that edits the same asset (not with --no-chain).

            Ctrl-C stops publishing and says which edits were accepted and which were not; what was accepted is applied \
            all the same. Exit status: 0 when every edit was applied (or accepted, with --until accepted), 3 when some \
            failed, or when it was stopped.
            """
    )

    @Argument(help: ArgumentHelp("JSON lines; - is standard input.", valueName: "file"))
    var file = "-"

    @Option(help: "Follow each edit until it is accepted, or applied.")
    var until = Goal.applied

    @Option(help: "Tells runs apart whose lines are the same, at most 64 bytes.")
    var name = ""

    @Flag(
        inversion: .prefixedNo,
        help: "Let the edits of an asset come one after the other, in the order of the lines."
    )
    var chain = true

    @Option(help: "Edits that are open at a time, 1 to 1000.")
    var window = 500

    @Flag(name: .shortAndLong, help: "A line for each state of each edit.")
    var verbose = false

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.catalog, .editor] }

    func validate() throws {
        guard (1...1000).contains(window) else { throw ValidationError("--window is a number from 1 to 1000") }
        guard name.utf8.count <= 64 else { throw ValidationError("--name has at most 64 bytes") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let reader = LineReader(file, longest: PublishedLine.maxBytes)
        let lines = try reader.lines()
        let publisher = try EditPublisher(library: library, until: until.publishGoal, window: window)
        let stop = StopRequest()
        let signals = StopSignals(stop)
        let teller = PublishTeller(PublishReport(output: output, isVerbose: verbose, goal: until.publishGoal))
        let run = PublishRun(name: name, isChained: chain, reader: reader, publisher: publisher, teller: teller)
        let isStopped = try await run.work(lines, stop: stop)
        withExtendedLifetime(signals) {}
        try await teller.finish(isStopped: isStopped)
        if await !teller.isComplete || isStopped { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }
}

extension PublishCommand {
    /// As ``PublishGoal``, for the command line.
    enum Goal: String, CaseIterable, ExpressibleByArgument {
        case accepted, applied

        var publishGoal: PublishGoal { self == .accepted ? .accepted : .applied }
    }
}
