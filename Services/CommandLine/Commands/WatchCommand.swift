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
        abstract: "Print each change as it happens, or run a command for it: exactly once, in order, without gaps.",
        discussion: """
            Runs until Ctrl-C and continues when services restart. With --json each line is a change record with its \
            token. To resume later without missing changes, give the last token to --since, or use --token-file.

            The command of --exec is run by the shell, one change at a time, with the record on its standard input and \
            SAFELIGHT_SEQUENCE, SAFELIGHT_TOKEN, SAFELIGHT_TOPICS, SAFELIGHT_DATE and SAFELIGHT_ORIGIN in its \
            environment. With --token-file a change is done once its command has succeeded; after a crash the command \
            may be run again for that one change. If the history no longer reaches back to the token, the command is \
            run once with {"expired": ...} and SAFELIGHT_EXPIRED=1, and must fetch everything again.

            With --grants the command follows requests for access and what the owner decides: a program of your own can \
            notify you.

            With --fetch the command follows the result of the fetch that --where, --sort, --limit, --offset, --hidden \
            and --album describe: first the whole list ("ids"), then each change of it ("details": removed, inserted, \
            moved, changed). Applying the changes in order keeps the list identical to the library's. A command of \
            --exec receives the same on its standard input.
            """
    )

    /// The action if the command fails.
    enum Failure: String, ExpressibleByArgument, CaseIterable {
        /// The watch ends with the command's status; the change does not count as done.
        case stop
        /// The failure is reported, and the watch continues with the next change.
        case `continue`
    }

    @Option(help: "Print only changes of this topic, for example asset.<id>. May be repeated.")
    var topic: [String] = []

    @Option(help: ArgumentHelp("Start now, after this token, or at the oldest change.", valueName: "token|now|start"))
    var since: String?

    @Option(parsing: .unconditional, help: "Stop after this number of changes.")
    var count: Int?

    @Option(help: ArgumentHelp("Run a command for each change instead of printing it.", valueName: "command"))
    var exec: String?

    @Option(help: ArgumentHelp("Action if the command fails: stop or continue.", valueName: "what"))
    var execFailure: Failure = .stop

    @Option(help: ArgumentHelp("Time limit of the command for one change.", valueName: "seconds"))
    var execSeconds = 600

    @Option(
        help: ArgumentHelp(
            "Store the last token in this file and resume from it; --since applies to the first run.",
            valueName: "file"
        )
    )
    var tokenFile: String?

    @Flag(help: "Follow requests for access, decisions, and transactions that need consent: the topic `grants`.")
    var grants = false

    @Flag(name: .customLong("fetch"), help: "Follow the result of a fetch.")
    var isFetch = false

    @OptionGroup(title: "With --fetch") var fetch: FetchOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { since == "start" || isFetch ? [.catalog, .changeBroker] : [.changeBroker] }

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count must be at least 1") }
        for topic in topic where topic.utf8.count > FeedTopic.maxBytes {
            throw ValidationError("a topic must have at most \(FeedTopic.maxBytes) bytes")
        }
        if let problem = topic.lazy.compactMap(FeedTopicFilter.problem).first {
            throw ValidationError("--topic: \(problem)")
        }
        if exec?.isEmpty == true { throw ValidationError("--exec needs a command") }
        guard isFetch || fetch.isEmpty else {
            throw ValidationError("--where, --sort, --limit, --offset, --hidden and --album require --fetch")
        }
        guard !grants || (topic.isEmpty && !isFetch) else {
            throw ValidationError("--grants cannot be combined with --topic or --fetch")
        }
        guard !isFetch || (topic.isEmpty && since == nil && tokenFile == nil) else {
            throw ValidationError("--fetch cannot be combined with --topic, --since or --token-file")
        }
        guard (1...86_400).contains(execSeconds) else { throw ValidationError("--exec-seconds must be 1 to 86400") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        // A command that does not read its input must not end the watch with SIGPIPE.
        signal(SIGPIPE, SIG_IGN)
        let program = exec.map { ChangeHook(command: $0, timeLimit: .seconds(execSeconds)) }
        if isFetch {
            let watch = FetchWatcher(
                program: program,
                stopsAtFailure: execFailure == .stop,
                count: count ?? Int.max,
                output: output
            )
            return try await watch.run(library.live(try await fetch.fetch(in: library)), in: library)
        }
        let watch = ChangeWatcher(
            program: program,
            stopsAtFailure: execFailure == .stop,
            count: count ?? Int.max,
            output: output
        )
        var tokens = tokenFile.map { TokenFile($0) }
        let storedToken = try tokens?.read()
        // Checked before the first command is run: without a stored token it would be run again at each start.
        try tokens?.check()
        let start = if let storedToken { Optional(storedToken) } else { try await start(in: library) }
        let feed = library.changes(since: start, topics: grants ? [FeedTopic.grants] : topic)
        try await watch.run(feed, in: library, tokens: tokens)
    }

    private func start(in library: PhotoLibrary) async throws -> ChangeToken? {
        switch since {
        case nil, "now": return nil
        case "start": return try await library.currentToken().oldest
        case let text?:
            guard let token = ChangeToken(text) else {
                throw CommandFailure.usage(
                    "\"\(text.prefix(80))\" is not a token: use now, start, or what `safelight status --token` printed"
                )
            }
            return token
        }
    }
}
