public import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
public import PhotoModel

/// `safelight grants`
struct GrantsCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "grants",
        abstract: "Decide who may do what with the library: list, pending, approve, deny, limit, revoke, history.",
        discussion: """
            An identity is key:NAME for a client with a key, uid:N for another user of this machine; NAME alone means \
            key:NAME. Decisions take effect at once, without a restart. Run it as the user who runs the services, \
            or with a key made with `safelight keys create NAME --access owner`.
            """,
        subcommands: [
            List.self, Pending.self, Approve.self, Deny.self, Limit.self, Widen.self, Narrow.self, Revoke.self,
            History.self,
        ],
        defaultSubcommand: List.self
    )

    /// `safelight grants list`
    struct List: LibraryCommand {
        static let configuration = CommandConfiguration(abstract: "List what each identity may do.")
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            var table = GrantTable()
            var position = 0
            while true {
                let page = try await library.catalog.ask(ListGrants(from: position, count: 500)).result
                for grant in page.grants {
                    if output.isJSON { try output.json(grant.json) }
                    table.add(grant)
                }
                position += page.grants.count
                if page.grants.isEmpty || position >= page.count { break }
            }
            if !output.isJSON { try output.lines(table.lines(orElse: "nobody but the owner has access")) }
        }
    }

    /// `safelight grants pending`
    struct Pending: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "List the requests for access and the transactions that wait for a decision."
        )
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let pending = try await library.catalog.ask(PendingGrants()).result
            try output.result(pending.json) {
                if pending.grants.isEmpty, pending.questions.isEmpty { return ["nothing waits for a decision"] }
                var table = GrantTable()
                for grant in pending.grants { table.add(grant) }
                let questions = pending.questions.map { GrantText.line($0) }
                return pending.grants.isEmpty ? questions : table.lines(orElse: "") + questions
            }
        }
    }

    /// `safelight grants approve`
    struct Approve: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give an identity access, or consent to one transaction.",
            discussion: "An identity need not have asked. Without options it receives what it asked for."
        )
        @Argument(help: "An identity, or a question about consent as printed by `grants pending`.") var id: String
        @Option(help: "readWrite or addOnly.") var access: AccessLevel?
        @Option(help: "all, or limited to a list of assets (see grants limit). Default: as before, else all.")
        var scope: GrantScope?
        @Option(help: "The changes that you are asked about: never, destructive or always.") var consent: ConsentPolicy?
        @Option(help: "The purpose, if it is not the one that the client stated.") var purpose: String?
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let (identity, question) = GrantText.subject(id)
            let decided = try await library.catalog.ask(
                ApproveGrant(
                    identity: identity,
                    question: question,
                    access: access,
                    scope: scope,
                    consent: consent,
                    purpose: purpose
                )
            ).result
            try output.result(decided.json) { GrantText.lines(decided) }
        }
    }

    /// `safelight grants deny`
    struct Deny: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Deny access to an identity, or decline one transaction."
        )
        @Argument(help: "An identity, or a question about consent as printed by `grants pending`.") var id: String
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let (identity, question) = GrantText.subject(id)
            let decided = try await library.catalog.ask(DenyGrant(identity: identity, question: question)).result
            try output.result(decided.json) { GrantText.lines(decided) }
        }
    }

    /// `safelight grants limit`
    struct Limit: SelectionCommand {
        static let configuration = CommandConfiguration(
            abstract: "Give an identity access to a list of assets and to nothing else.",
            discussion: """
                The list has the assets that the options select now; `grants widen` and `grants narrow` change it. \
                Assets that the client adds are added to its list. The client sees no albums and folders; moments and \
                smart albums have the assets of the list only.
                """
        )
        @Argument(help: "The identity.") var identity: String
        @OptionGroup var assets: AssetSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await GrantsCommand.change(identity, assets, .set, in: library, output)
        }
    }

    /// `safelight grants widen`
    struct Widen: SelectionCommand {
        static let configuration = CommandConfiguration(abstract: "Add assets to the list of a limited identity.")
        @Argument(help: "The identity.") var identity: String
        @OptionGroup var assets: AssetSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await GrantsCommand.change(identity, assets, .add, in: library, output)
        }
    }

    /// `safelight grants narrow`
    struct Narrow: SelectionCommand {
        static let configuration = CommandConfiguration(abstract: "Remove assets from the list of a limited identity.")
        @Argument(help: "The identity.") var identity: String
        @OptionGroup var assets: AssetSelection
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            try await GrantsCommand.change(identity, assets, .remove, in: library, output)
        }
    }

    fileprivate static func change(
        _ identity: String,
        _ assets: AssetSelection,
        _ action: LimitGrant.Action,
        in library: PhotoLibrary,
        _ output: Output
    ) async throws {
        let request = LimitGrant(
            identity: GrantText.identity(identity),
            assets: try await assets.read(in: library),
            action: action
        )
        let decided = try await library.catalog.ask(request).result
        try output.result(decided.json) { GrantText.lines(decided) }
    }

    /// `safelight grants revoke`
    struct Revoke: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "Revoke the access of an identity.",
            discussion: """
                Its running requests end with access_denied within a second, and its streams end. The key stays on its \
                lists; `safelight keys revoke` removes it from them.
                """
        )
        @Argument(help: "The identity.") var identity: String
        @OptionGroup var client: ClientOptions

        func run(in library: PhotoLibrary, output: Output) async throws {
            let request = RevokeGrant(identity: GrantText.identity(identity))
            let decided = try await library.catalog.ask(request).result
            try output.result(decided.json) { GrantText.lines(decided) }
        }
    }

    /// `safelight grants history`
    struct History: LibraryCommand {
        static let configuration = CommandConfiguration(
            abstract: "List requests and decisions, newest first, as far as the history reaches back."
        )
        @Argument(help: "Only about this identity.") var identity: String?
        @Option(help: "Maximum number of entries.") var count = 100
        @OptionGroup var client: ClientOptions

        func validate() throws {
            guard (1...GrantHistory.maxEntries).contains(count) else {
                throw ValidationError("--count must be 1 to \(GrantHistory.maxEntries)")
            }
        }

        func run(in library: PhotoLibrary, output: Output) async throws {
            let request = GrantHistory(identity: identity.map(GrantText.identity), count: count)
            let records = try await library.catalog.ask(request).result.records
            for record in records {
                try output.result(record.json) {
                    [output.bold(ChangeFormatter.heading(record))] + ChangeFormatter.lines(record).map { "    \($0)" }
                }
            }
            if records.isEmpty, !output.isJSON { try output.lines(["the history has no decisions"]) }
        }
    }
}

extension AccessLevel: ExpressibleByArgument {}
extension ConsentPolicy: ExpressibleByArgument {}
extension GrantScope: ExpressibleByArgument {}

/// The table of grants.
private struct GrantTable {
    private var table = TextTable([
        .init(title: "identity"), .init(title: "status"), .init(title: "access"), .init(title: "consent"),
        .init(title: "decided by"), .init(title: "purpose"),
    ])
    private var isEmpty = true

    mutating func add(_ grant: Grant) {
        isEmpty = false
        table.add([
            grant.identity.printable, grant.status.rawValue, grant.access.rawValue, grant.consent.rawValue,
            grant.decidedBy?.printable ?? "nobody yet", grant.purpose.printable,
        ])
    }

    func lines(orElse text: String) -> [String] { isEmpty ? [text] : table.lines }
}

/// Formats grants and questions about consent as text.
enum GrantText {
    /// Returns the identity or the question about consent that an argument names.
    static func subject(_ text: String) -> (identity: String?, question: String?) {
        let isQuestion = text.count == 17 && text.hasPrefix("q") && text.dropFirst().allSatisfy(\.isHexDigit)
        return isQuestion ? (nil, text) : (identity(text), nil)
    }

    /// Returns the identity of a name: `key:ann` for `ann`.
    static func identity(_ text: String) -> String { text.contains(":") ? text : "key:\(text)" }

    static func line(_ question: ConsentQuestion) -> String {
        "\(question.id)  \(question.identity.printable) wants: \(question.summary.printable)"
    }

    static func lines(_ decided: DecidedGrant) -> [String] {
        let question = decided.question.map { "\($0.id): \($0.state.rawValue)" }
        return [decided.grant.map { line($0) }, question].compactMap { $0 }
    }

    static func line(_ grant: Grant) -> String {
        let identity = grant.identity.printable
        switch grant.status {
        case .notDetermined: return "\(identity) asks for \(grant.access.rawValue): \(grant.purpose.printable)"
        case .restricted, .denied: return "\(identity) is \(grant.status.rawValue)"
        case .limited:
            return "\(identity) sees \(QuantityFormatter.count(grant.assetCount, "asset"))"
        case .authorized:
            let consent = grant.consent == .never ? "" : ", consent \(grant.consent.rawValue)"
            return "\(identity) has \(grant.access.rawValue) access\(consent)"
        }
    }
}
