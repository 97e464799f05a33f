import ArgumentParser
import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight watch`
struct WatchCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print every change as it happens, or run a command for it: each once, in order, without a gap.",
        discussion: """
            It goes on through restarts of the services, until Ctrl-C. With --json each line is a change record with \
            its token; give the last one to --since and nothing that happened meanwhile is missed, or let \
            --token-file remember it.

            The command of --exec is run by the shell, one at a time, with the record on its standard input and \
            SAFELIGHT_SEQUENCE, SAFELIGHT_TOKEN, SAFELIGHT_TOPICS, SAFELIGHT_DATE and SAFELIGHT_ORIGIN. With \
            --token-file a change counts as done when its command has succeeded: after a crash the command may see \
            that one change again. Where the history no longer reaches back, it is run once with \
            {"expired": ...} and SAFELIGHT_EXPIRED=1, and must fetch anew.

            With --fetch it follows the result of a fetch, which --where, --sort, --limit, --offset, --hidden and \
            --album describe: first the whole list ("ids"), then what changes in it ("details": removed, inserted, \
            moved, changed), so that the list is always exactly the library's. A command gets the same on its standard \
            input.
            """
    )

    /// What happens when the command fails.
    enum Failure: String, ExpressibleByArgument, CaseIterable {
        /// The watch ends with the command's status; the change is not counted as done.
        case stop
        /// It is said, and the next change is taken.
        case `continue`
    }

    @Option(help: "Only what a topic carries, for example asset.<id>. May be repeated.")
    var topic: [String] = []

    @Option(help: ArgumentHelp("Begin after a token; start is the oldest kept.", valueName: "token|start"))
    var since: String?

    @Option(help: "Stop after so many changes.")
    var count: Int?

    @Option(help: ArgumentHelp("Run a command for each change instead of printing it.", valueName: "command"))
    var exec: String?

    @Option(help: ArgumentHelp("When it fails: stop or continue.", valueName: "what"))
    var execFailure: Failure = .stop

    @Option(help: ArgumentHelp("How long it may take for one change.", valueName: "seconds"))
    var execSeconds = 600

    @Option(
        help: ArgumentHelp(
            "Remember here how far it has come, and begin there; --since is for the first time.",
            valueName: "file"
        )
    )
    var tokenFile: String?

    @Flag(name: .customLong("fetch"), help: "Follow the result of a fetch.")
    var isFetch = false

    @OptionGroup(title: "With --fetch") var fetch: FetchOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { since == "start" || isFetch ? [.catalog, .changeBroker] : [.changeBroker] }

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is at least 1") }
        for topic in topic where topic.utf8.count > FeedTopic.maxBytes {
            throw ValidationError("a topic has at most \(FeedTopic.maxBytes) bytes")
        }
        if let problem = topic.lazy.compactMap(FeedTopicFilter.problem).first {
            throw ValidationError("--topic: \(problem)")
        }
        if exec?.isEmpty == true { throw ValidationError("--exec needs a command") }
        guard isFetch || fetch.isEmpty else {
            throw ValidationError("--where, --sort, --limit, --offset, --hidden and --album are for watch --fetch")
        }
        guard !isFetch || (topic.isEmpty && since == nil && tokenFile == nil) else {
            throw ValidationError("--fetch begins with the whole list: leave out --topic, --since and --token-file")
        }
        guard (1...86_400).contains(execSeconds) else { throw ValidationError("--exec-seconds is 1 to 86400") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        // A command that does not read its input must not end the watch.
        signal(SIGPIPE, SIG_IGN)
        let program = exec.map { ChangeProgram(command: $0, time: .seconds(execSeconds)) }
        if isFetch {
            let watch = FetchWatch(
                program: program,
                stopsAtFailure: execFailure == .stop,
                count: count ?? Int.max,
                output: output
            )
            return try await watch.run(library.live(try await fetch.fetch(in: library)))
        }
        let watch = ChangeWatch(
            program: program,
            stopsAtFailure: execFailure == .stop,
            count: count ?? Int.max,
            output: output
        )
        var tokens = tokenFile.map { TokenFile($0) }
        let remembered = try tokens?.read()
        let start = if let remembered { Optional(remembered) } else { try await start(in: library) }
        try await watch.run(library.changes(since: start, topics: topic), tokens: tokens)
    }

    private func start(in library: PhotoLibrary) async throws -> ChangeToken? {
        switch since {
        case nil: return nil
        case "start": return try await library.currentToken().oldest
        case let text?:
            guard let token = ChangeToken(text) else {
                throw CommandFailure.usage("\"\(text.prefix(80))\" is no token; `safelight status` prints the newest")
            }
            return token
        }
    }
}
