import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// The same done to many assets, in as many transactions as it takes.
enum Transactions {
    /// - Parameters:
    ///   - words: what was done to them, for people
    ///   - besides: entities that each transaction touches besides the assets
    static func perform(
        _ ids: [ObjectID],
        in library: PhotoLibrary,
        _ output: Output,
        _ words: String,
        besides: Int = 0,
        requests: ([ObjectID]) -> [ChangeRequest]
    ) async throws {
        let pieces = split(ids, by: ChangeRecord.maxEntities - besides)
        if pieces.count > 1 { output.note("more than fits a transaction: \(pieces.count) transactions") }
        for piece in pieces {
            let result = try await library.perform(requests(piece))
            var json = result.json.objectValue ?? [:]
            json["assets"] = JSON(piece.count)
            try output.result(.object(json)) {
                result.isChanged
                    ? ["\(Quantities.count(piece.count, "asset")) \(words), change #\(result.sequence)"]
                    : ["nothing to change"]
            }
        }
    }

    /// Gives assets the same properties.
    static func set(
        _ patch: AssetPatch,
        of ids: [ObjectID],
        in library: PhotoLibrary,
        _ output: Output,
        _ words: String
    ) async throws {
        try await perform(ids, in: library, output, words) { ids in
            ids.map { .updateAsset(.init(id: .id($0), set: patch)) }
        }
    }

    /// Tells what became of a change of places.
    static func tellMoved(_ result: PerformChanges.Result, _ output: Output) throws {
        try output.result(result.json) {
            [result.isChanged ? "moved, change #\(result.sequence)" : "nothing to change"]
        }
    }

    static func split(_ ids: [ObjectID], by size: Int) -> [[ObjectID]] {
        stride(from: 0, to: ids.count, by: size).map { Array(ids[$0..<min($0 + size, ids.count)]) }
    }
}
