import Testing

@testable import Storage

@Suite(.timeLimit(.minutes(1)))
struct CheckpointPaceTests {
    /// Begins a log, lets it grow until a checkpoint is due, and reports a checkpoint of this duration.
    private func fillLog(_ pace: inout CheckpointPace, _ duration: Int64) {
        _ = pace.recordLogSize(0)
        let (isEarly, isDue) = (pace.recordLogSize(pace.pages - 1), pace.recordLogSize(pace.pages))
        #expect(!isEarly && isDue)
        pace.checkpointEnded(isWhole: true, after: duration)
    }

    @Test func `the log becomes large on a fast disk, and small on a slow one`() {
        var pace = CheckpointPace(maxPages: 16_000)
        #expect(pace.pages == 4_000)
        for _ in 0..<3 { fillLog(&pace, 20_000) }
        #expect(pace.pages == 16_000)
        // Within the limit, but more than half of it: the size stays.
        fillLog(&pace, 80_000)
        #expect(pace.pages == 16_000)
        fillLog(&pace, 300_000)
        #expect(pace.pages == 8_000)
        for _ in 0..<9 { fillLog(&pace, 10_000_000) }
        #expect(pace.pages == 1_000)
        fillLog(&pace, 1_000)
        #expect(pace.pages == 2_000)
    }

    @Test func `a checkpoint that has little to write does not count as a fast disk`() {
        var pace = CheckpointPace(maxPages: 16_000)
        for _ in 0..<9 { fillLog(&pace, 300_000) }
        #expect(pace.pages == 1_000)
        // The log is the same as before: no commit, or a reader prevents its restart.
        for pages in [1_000, 1_010, 1_020] {
            let isDue = pace.recordLogSize(pages)
            #expect(isDue)
            pace.checkpointEnded(isWhole: true, after: 100)
        }
        #expect(pace.pages == 1_000)
        // A reader needs a part of a new log.
        _ = pace.recordLogSize(1)
        _ = pace.recordLogSize(1_000)
        pace.checkpointEnded(isWhole: false, after: 100)
        #expect(pace.pages == 1_000)
        fillLog(&pace, 100)
        #expect(pace.pages == 2_000)
    }

    @Test func `a size of few pages stays above zero`() {
        var pace = CheckpointPace(maxPages: 2)
        for _ in 0..<3 { fillLog(&pace, 1_000_000) }
        #expect(pace.pages == 1)
    }
}
