import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Changes to many assets, divided into as many transactions as necessary.
enum BatchedChanges {
    /// Performs changes of assets; prints the result of each transaction and the progress between them.
    ///
    /// - Parameters:
    ///   - action: the action in the printed result, for example "deleted"
    ///   - besides: the number of other entities that each transaction changes, such as the album
    ///   - before: the number of assets that the command has changed already
    ///   - transactions: the transactions of the command, if it has performed some already
    static func perform(
        _ ids: [ObjectID],
        in library: PhotoLibrary,
        _ output: Output,
        _ action: String,
        besides: Int = 0,
        before: Int = 0,
        transactions: CommandTransactions = CommandTransactions(),
        requests: ([ObjectID]) -> [ChangeRequest]
    ) async throws {
        guard !ids.isEmpty else {
            if !output.isJSON { try output.line("nothing to change") }
            return
        }
        let batches = split(ids, by: ChangeRecord.maxEntities - besides)
        if batches.count > 1 { output.note("too many assets for one transaction: using \(batches.count) transactions") }
        var transactions = transactions
        var progress = ProgressReporter(output: output)
        let total = before + ids.count
        progress.begin(total: total)
        var done = before
        if done > 0 { progress.update(done) }
        for batch in batches {
            let result: PerformChanges.Result
            do {
                result = try await library.perform(requests(batch), transaction: transactions.next())
            } catch {
                progress.clear()
                throw CommandFailure(error, after: done, of: total)
            }
            done += batch.count
            InterruptedWork.update(done)
            progress.clear()
            var json = result.json.objectValue ?? [:]
            json["assets"] = JSON(batch.count)
            try output.result(.object(json)) {
                result.isChanged
                    ? ["\(QuantityFormatter.count(batch.count, "asset")) \(action), change #\(result.sequence)"]
                    : ["nothing to change"]
            }
            if done < total { progress.update(done) }
        }
    }

    /// Applies the same patch to all assets.
    static func set(
        _ patch: AssetPatch,
        of ids: [ObjectID],
        in library: PhotoLibrary,
        _ output: Output,
        _ action: String
    ) async throws {
        try await perform(ids, in: library, output, action) { ids in
            ids.map { .updateAsset(.init(id: .id($0), set: patch)) }
        }
    }

    /// Prints the result of moving members.
    static func reportMoved(_ result: PerformChanges.Result, _ output: Output) throws {
        try output.result(result.json) {
            [result.isChanged ? "moved, change #\(result.sequence)" : "nothing to change"]
        }
    }

    /// Divides identifiers into arrays of at most `size`.
    static func split(_ ids: [ObjectID], by size: Int) -> [[ObjectID]] {
        stride(from: 0, to: ids.count, by: size).map { Array(ids[$0..<min($0 + size, ids.count)]) }
    }
}
