import JSONValue

extension ObservedFetches {
    /// The maximum number of fetches that the metrics list.
    private static let maxListed = 100

    /// Returns the metrics.
    ///
    /// - Parameter behind: the number of records with which the fetches have yet to be updated
    func metrics(behind: Int64) -> JSONObject {
        let list = fetches.values.sorted { $0.number < $1.number }.prefix(Self.maxListed).map { observed -> JSON in
            [
                "observation": .string(observed.observation), "rows": JSON(observed.result.rows),
                "bytes": JSON(observed.result.bytes), "holders": JSON(observed.observers.count),
                "lastChange": .int(observed.previous),
            ]
        }
        return [
            "count": JSON(fetches.count), "results": JSON(results.count), "unindexed": JSON(index.unindexedCount),
            "rows": JSON(rows), "bytes": JSON(resultBytes + logBytes), "logBytes": JSON(logBytes),
            "maxBytes": JSON(maxBytes), "maxLogBytes": JSON(maxLogBytes), "logsShortened": JSON(counts.shortened),
            "records": JSON(counts.records), "candidates": JSON(counts.candidates),
            "predicatesEvaluated": JSON(counts.predicates), "messages": JSON(counts.messages),
            "dropped": JSON(counts.dropped), "broken": JSON(counts.broken), "reloaded": JSON(counts.reloaded),
            "suspended": JSON(counts.suspended),
            "longEvaluations": JSON(counts.long), "tooLong": JSON(counts.tooLong),
            "behind": .int(behind), "list": .array(list),
        ]
    }
}
