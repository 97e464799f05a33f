import JSONValue

/// The writer's counters.
struct WriterMetrics: Sendable {
    var commits = 0
    var transactions = 0
    var refused = 0
    var repeats = 0
    var failedCommits = 0
    var largestBatch = 0
    /// The durations of the last commits in microseconds.
    private var durations: [Int64] = []
    private var position = 0
    private static let kept = 1024

    mutating func committed(_ answers: [Result<PerformedWrite, WriteFailure>], microseconds: Int64) {
        commits += 1
        largestBatch = max(largestBatch, answers.count)
        for answer in answers {
            switch answer {
            case .success(let performed) where performed.isRepeat: repeats += 1
            case .success(let performed) where performed.isIdle: break
            case .success: transactions += 1
            case .failure: refused += 1
            }
        }
        if durations.count < Self.kept {
            durations.append(microseconds)
        } else {
            durations[position] = microseconds
            position = (position + 1) % Self.kept
        }
    }

    var json: JSONObject {
        let sorted = durations.sorted()
        func quantile(_ share: Double) -> JSON {
            sorted.isEmpty ? .null : .int(sorted[min(sorted.count - 1, Int(Double(sorted.count) * share))])
        }
        return [
            "commits": JSON(commits), "transactions": JSON(transactions), "refused": JSON(refused),
            "repeats": JSON(repeats), "failedCommits": JSON(failedCommits), "largestBatch": JSON(largestBatch),
            "commitMicrosecondsP50": quantile(0.5), "commitMicrosecondsP99": quantile(0.99),
        ]
    }
}
