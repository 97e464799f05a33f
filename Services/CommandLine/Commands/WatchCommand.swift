import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight watch`
struct WatchCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "watch",
        abstract: "Print every change as it happens: each once, in order, without a gap.",
        discussion: """
            It goes on through restarts of the services, until Ctrl-C. With --json each line is a change record with \
            its token; give the last one to --since and nothing that happened meanwhile is missed.
            """
    )

    @Option(help: "Only what a topic carries, for example asset.<id>. May be repeated.")
    var topic: [String] = []

    @Option(help: ArgumentHelp("Begin after a token; start is the oldest kept.", valueName: "token|start"))
    var since: String?

    @Option(help: "Stop after so many changes.")
    var count: Int?

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { since == "start" ? [.catalog, .changeBroker] : [.changeBroker] }

    func validate() throws {
        if let count, count < 1 { throw ValidationError("--count is at least 1") }
        for topic in topic where topic.utf8.count > FeedTopic.maxBytes || topic.isEmpty {
            throw ValidationError("a topic has 1 to \(FeedTopic.maxBytes) bytes")
        }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        var left = count ?? Int.max
        for try await event in library.changes(since: try await start(in: library), topics: topic) {
            switch event {
            case .change(let record):
                try Self.tell(record, output)
                left -= 1
                if left == 0 { return }
            case .expired(let head, let oldest):
                if output.isJSON {
                    try output.json([
                        "expired": [
                            "token": .string(head.description), "oldest": .string(oldest.description),
                        ]
                    ])
                } else {
                    output.note(
                        "safelight: the history does not reach back to that token; going on from now, fetch again what "
                            + "you need (token_expired)"
                    )
                }
            case .caughtUp:
                continue
            }
        }
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

    private static func tell(_ record: ChangeRecord, _ output: Output) throws {
        var json = record.json.objectValue ?? [:]
        json["token"] = .string(record.token.description)
        try output.result(.object(json)) {
            [output.bold(ChangeWords.heading(record))] + ChangeWords.lines(record).map { "    \($0)" }
        }
    }
}
