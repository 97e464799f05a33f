import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight undo`
struct UndoCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "undo",
        abstract: "Undo the last command with which you changed something.",
        discussion: """
            The inverse is a new change; the history is kept. All changes of the last command are undone, the newest \
            first: a command makes one for up to 1,000 assets, and edit and revert make one for each asset. A change \
            without an exact inverse is refused with the reason, and so is a change whose assets or albums were \
            changed again since. A change of several edits, or of an edit and something else, is refused too. A \
            second undo undoes the first one. Edits of one asset can also be restored with `safelight history ID \
            --undo-to STEP`.
            """
    )

    @Option(
        parsing: .unconditional,
        help: ArgumentHelp("Undo only this change, as printed by `safelight log`.", valueName: "number")
    )
    var change: Int64?

    @Flag(help: "Print the changes that would be undone, and change nothing.")
    var dryRun = false

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    /// The number of records that are searched at a time, the newest first.
    private static let window: Int64 = 500
    /// The time, in microseconds, by which the clock of the catalog may be behind that of a command.
    private static let clockDifference: Int64 = 60_000_000

    func validate() throws {
        guard change.map({ $0 >= 1 }) ?? true else { throw ValidationError("--change is a number from 1") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let steps = try await steps(in: library, output)
        guard !steps.isEmpty else {
            throw CommandFailure(
                message: change.map { "the history has no change #\($0)" }
                    ?? "the history has no change that you made with safelight; `safelight log` lists all changes",
                name: ErrorCode.identifierNotFound.rawValue
            )
        }
        guard !dryRun else {
            for step in steps { try output.result(step.json) { ["would undo:"] + step.lines } }
            return
        }
        var transactions = CommandTransactions()
        var undone: [ObjectID: InverseChange.UndoneAlbum] = [:]
        for (done, step) in steps.enumerated() {
            var inverse = step.inverse
            let outcome: (sequence: Int64, isChanged: Bool)
            do {
                try inverse.updateConditions(undone)
                outcome = try await perform(inverse, &transactions, in: library, output)
            } catch {
                throw Self.failure(error, after: done, of: steps)
            }
            for (id, album) in inverse.albums {
                let revision = outcome.isChanged ? Revision(outcome.sequence) : undone[id]?.now ?? album.after
                undone[id] = InverseChange.UndoneAlbum(before: album.before, now: revision)
            }
            try output.result(["undone": .int(step.sequence), "sequence": .int(outcome.sequence)]) {
                ["undone by change #\(outcome.sequence):"] + step.lines
            }
        }
    }

    /// Returns the error. If some changes were undone, it lists the others, for `--change`.
    private static func failure(_ error: any Error, after done: Int, of steps: [Step]) -> CommandFailure {
        var failure = CommandFailure(error, after: done, of: steps.count, "change")
        guard done > 0 else { return failure }
        let rest = steps[done...].map { "#\($0.sequence)" }
        failure.message +=
            "; not undone: \(QuantityFormatter.list(Array(rest.prefix(20)), of: rest.count)); see --change"
        return failure
    }

    /// Performs the inverse of a change.
    private func perform(
        _ inverse: InverseChange,
        _ transactions: inout CommandTransactions,
        in library: PhotoLibrary,
        _ output: Output
    ) async throws -> (sequence: Int64, isChanged: Bool) {
        var last: (sequence: Int64, isChanged: Bool) = (0, false)
        if !inverse.requests.isEmpty {
            let result = try await library.perform(inverse.requests, transaction: transactions.next())
            last = (result.sequence, result.isChanged)
        }
        for undo in inverse.edits {
            var request = undo
            request.client = library.client
            request.isNetworkAccessAllowed = downloads.download
            request.transaction = transactions.next()
            let outcome = try await library.editor.change(request, deadline: .seconds(300), downloads, output)
            last = (outcome.sequence, outcome.isChanged)
        }
        return last
    }

    // MARK: The history

    /// A change to undo, without its record, which may have a thousand whole assets.
    private struct Step {
        let sequence: Int64
        let inverse: InverseChange
        let lines: [String]
        /// The record, if it is printed.
        let json: JSON
    }

    private func step(_ record: ChangeRecord, _ output: Output) throws -> Step {
        Step(
            sequence: record.sequence,
            inverse: try InverseChange(of: record),
            lines: [output.bold(ChangeFormatter.heading(record))]
                + ChangeFormatter.lines(record).map { "    \($0)" },
            json: dryRun ? record.json : .null
        )
    }

    /// Returns the change given by `--change`, or those of this user's last command, the newest first.
    ///
    /// - Throws: ``CommandFailure`` if one of them has no exact inverse
    private func steps(in library: PhotoLibrary, _ output: Output) async throws -> [Step] {
        if let change {
            let record = try await record(change, try await library.currentToken(), in: library)
            return try record.map { [try step($0, output)] } ?? []
        }
        // The catalog answers at once: an identity that may read the history needs no decision of the owner.
        let request = OpenSession(client: library.client, purpose: "safelight undo")
        let identity = try await library.catalog.ask(request).result.identity
        let current = try await library.currentToken()
        var steps: [Step] = []
        var run: String?
        var end = current.token.sequence
        while end > current.oldest.sequence {
            let start = max(0, end - Self.window)
            var mine: [(sequence: Int64, transaction: String?)] = []
            var last: ChangeRecord?
            var oldest: Int64?
            try await read(after: start, through: end, current, in: library) { record in
                oldest = oldest ?? record.date
                let origin = record.origin
                let author = origin.onBehalfOf ?? origin.identity
                guard author == identity, origin.client == library.client else { return }
                mine.append((record.sequence, origin.transaction))
                last = record
            }
            end = start
            if steps.isEmpty {
                guard let last else { continue }
                steps.append(try step(last, output))
                run = CommandTransactions.run(of: last.origin.transaction)
                guard run != nil, !CommandTransactions.isFirst(last.origin.transaction) else { break }
                mine.removeLast()
            } else if !mine.contains(where: { CommandTransactions.run(of: $0.transaction) == run }) {
                // Others may have made many changes meanwhile; no change of the command is older than its start.
                let runStart = run.flatMap(CommandTransactions.startTime) ?? .max
                guard let oldest, oldest >= runStart - Self.clockDifference else { break }
            }
            // Others may have made changes between those of the command.
            let parts = mine.filter { CommandTransactions.run(of: $0.transaction) == run }
            for part in parts.reversed() {
                guard let record = try await record(part.sequence, current, in: library) else { continue }
                steps.append(try step(record, output))
            }
            if parts.contains(where: { CommandTransactions.isFirst($0.transaction) }) { break }
        }
        return steps
    }

    /// Returns the record of a change; nil if there is none, also beyond the newest and where the history no longer
    /// reaches back.
    private func record(
        _ sequence: Int64,
        _ current: CurrentToken.Result,
        in library: PhotoLibrary
    ) async throws -> ChangeRecord? {
        var found: ChangeRecord?
        try await read(after: sequence - 1, through: sequence, current, in: library) { found = $0 }
        return found
    }

    /// Reads the records after a sequence through another one or the newest, the oldest first.
    ///
    /// The records may be on several pages: the size of a page is limited too.
    private func read(
        after sequence: Int64,
        through last: Int64,
        _ current: CurrentToken.Result,
        in library: PhotoLibrary,
        _ visit: (ChangeRecord) -> Void
    ) async throws {
        let end = min(last, current.token.sequence)
        var token = ChangeToken(library: current.token.library, sequence: max(sequence, current.oldest.sequence))
        while token.sequence < end {
            let limit = Int(end - token.sequence)
            let page = try await library.catalog.ask(ChangesSince(token: token, limit: limit)).result
            for json in page.records {
                let record = try ChangeRecord(json: json)
                if record.sequence <= end { visit(record) }
            }
            guard page.token.sequence > token.sequence else { return }
            token = page.token
        }
    }
}
