import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight undo`
struct UndoCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo",
        abstract: "Take back the last change that you made with safelight.",
        discussion: """
            The inverse is a new change; the history is kept. A change without an exact inverse is refused by name, \
            and so is a change whose assets or albums were changed again since. A change of several edits, or of an \
            edit and something else, is refused too. A second undo takes the first one back. Edits of one asset can \
            also be restored with `safelight history ID --undo-to STEP`.
            """
    )

    @Option(help: ArgumentHelp("Take back this change, as printed by `safelight log`.", valueName: "number"))
    var change: Int64?

    @Flag(help: "Print what would be taken back, and change nothing.")
    var dryRun = false

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    /// The records that are searched before the older ones.
    private static let window: Int64 = 500

    func validate() throws {
        guard change.map({ $0 >= 1 }) ?? true else { throw ValidationError("--change is a number from 1") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        guard let record = try await record(in: library) else {
            throw CommandFailure(
                message: change.map { "the history has no change #\($0)" }
                    ?? "the history has no change that you made with safelight; `safelight log` lists all changes",
                name: ErrorCode.identifierNotFound.rawValue
            )
        }
        let inverse = try InverseChange(of: record)
        let lines = [output.bold(ChangeFormatter.heading(record))] + ChangeFormatter.lines(record).map { "    \($0)" }
        guard !dryRun else { return try output.result(record.json) { ["would take back:"] + lines } }
        var sequence: Int64 = 0
        if !inverse.requests.isEmpty { sequence = try await library.perform(inverse.requests).sequence }
        for undo in inverse.edits {
            var request = undo
            request.client = library.client
            request.isNetworkAccessAllowed = downloads.download
            request.transaction = PhotoLibrary.uniqueTransaction()
            sequence = try await library.editor.change(request, deadline: .seconds(300), downloads, output).sequence
        }
        let last = sequence
        try output.result(["undone": .int(record.sequence), "sequence": .int(last)]) {
            ["took back, change #\(last):"] + lines
        }
    }

    /// Returns the change that was named, or the last one of this user's commands.
    private func record(in library: PhotoLibrary) async throws -> ChangeRecord? {
        if let change {
            let current = try await library.currentToken()
            return try await lastRecord(after: change - 1, count: 1, current, in: library) { _ in true }
        }
        // An answer at once: whoever may read the history is known to the catalog.
        let request = OpenSession(client: library.client, purpose: "safelight undo")
        let identity = try await library.catalog.ask(request).result.identity
        let current = try await library.currentToken()
        var end = current.token.sequence
        while end > current.oldest.sequence {
            let start = max(0, end - Self.window)
            let mine = try await lastRecord(after: start, count: end - start, current, in: library) {
                ($0.origin.onBehalfOf ?? $0.origin.identity) == identity && $0.origin.client == library.client
            }
            if let mine { return mine }
            end = start
        }
        return nil
    }

    /// Returns the last of the records after a sequence that fulfils a condition; nil if there is none, also beyond the
    /// newest and where the history no longer reaches back.
    ///
    /// The records may be on several pages, the oldest first: the size of a page is limited too.
    private func lastRecord(
        after sequence: Int64,
        count: Int64,
        _ current: CurrentToken.Result,
        in library: PhotoLibrary,
        where isWanted: (ChangeRecord) -> Bool
    ) async throws -> ChangeRecord? {
        let end = min(sequence + count, current.token.sequence)
        var last: ChangeRecord?
        var token = ChangeToken(library: current.token.library, sequence: max(sequence, current.oldest.sequence))
        while token.sequence < end {
            let limit = Int(end - token.sequence)
            let page = try await library.catalog.ask(ChangesSince(token: token, limit: limit)).result
            let records = try page.records.map { try ChangeRecord(json: $0) }
            last = records.last { $0.sequence <= end && isWanted($0) } ?? last
            guard page.token.sequence > token.sequence else { break }
            token = page.token
        }
        return last
    }
}
