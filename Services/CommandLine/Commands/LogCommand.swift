import ArgumentParser
import Contracts
import DequeModule
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight log`
struct LogCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "log",
        abstract: "Print who changed what, oldest first, as far as the history reaches back.",
        discussion: """
            NAME is an identity (key:ann, uid:1000), the name of a key, or the name that a client program gave itself. \
            Changes that a service made for a client are the client's. Requests that were refused are not part of the \
            history; `safelight status --figures` counts them by identity.
            """
    )

    @Option(help: ArgumentHelp("Only changes of this identity or client program.", valueName: "name"))
    var by: String?

    @Option(
        help: ArgumentHelp("Only changes since this time, as 2024-06-01 or 2024-06-01T12:00:00Z.", valueName: "date")
    )
    var since: String?

    @Option(help: "Only changes of this topic, for example asset.<id> or grants. May be repeated.")
    var topic: [String] = []

    @Option(parsing: .unconditional, help: "Only the newest ones, at most this number; 0 for all, the default.")
    var limit = 0

    @OptionGroup var client: ClientOptions

    /// The maximum of `--limit`. These changes are kept in memory until the newest one is read.
    private static let maxLimit = 100_000

    func validate() throws {
        guard (0...Self.maxLimit).contains(limit) else {
            throw ValidationError("--limit must be a number from 0 to \(Self.maxLimit)")
        }
        if let problem = topic.lazy.compactMap(FeedTopicFilter.problem).first {
            throw ValidationError("--topic: \(problem)")
        }
        if let since, Timestamp.parse(since) == nil {
            throw ValidationError("--since must be a date, as 2024-06-01 or 2024-06-01T12:00:00Z")
        }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let since = since.flatMap(Timestamp.parse) ?? .min
        var token: ChangeToken? = nil
        var newest: Deque<ChangeRecord> = []
        while true {
            let page = try await library.catalog.ask(ChangesSince(token: token, limit: 500, topics: topic)).result
            for json in page.records {
                let record = try ChangeRecord(json: json)
                guard record.date >= since, by.map({ Self.isAuthor($0, of: record.origin) }) ?? true else { continue }
                guard limit > 0 else {
                    try write(record, output)
                    continue
                }
                newest.append(record)
                if newest.count > limit { newest.removeFirst() }
            }
            guard page.token != page.head, page.token != token else { break }
            token = page.token
        }
        for record in newest { try write(record, output) }
    }

    private func write(_ record: ChangeRecord, _ output: Output) throws {
        try output.result(record.json) {
            [output.bold(ChangeFormatter.heading(record))] + ChangeFormatter.lines(record).map { "    \($0)" }
        }
    }

    static func isAuthor(_ name: String, of origin: ChangeOrigin) -> Bool {
        let author = origin.onBehalfOf ?? origin.identity
        return author == name || author == "key:\(name)" || origin.client == name
    }
}
