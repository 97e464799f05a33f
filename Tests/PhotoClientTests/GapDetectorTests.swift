import Testing

@testable import PhotoClient

@Suite(.timeLimit(.minutes(5)))
struct GapDetectorTests {
    @Test func `messages are recognized as in order, duplicate or after a gap`() {
        var detector = GapDetector(position: 10)
        let table: [(previous: Int64, sequence: Int64, verdict: GapDetector.Verdict)] = [
            (8, 9, .duplicate), (9, 10, .duplicate), (10, 11, .inOrder), (11, 11, .duplicate), (5, 14, .inOrder),
            (15, 16, .gap(after: 14)), (15, 17, .gap(after: 14)), (14, 15, .inOrder), (15, 16, .inOrder),
            (0, 20, .inOrder), (Int64.max, Int64.max, .gap(after: 20)), (Int64.min, Int64.min, .duplicate),
            (-5, 21, .inOrder),
        ]
        for row in table {
            #expect(detector.check(previous: row.previous, sequence: row.sequence) == row.verdict, "\(row)")
        }
        #expect(detector.position == 21)
    }

    @Test func `a topic that carries everything confirms as soon as it is behind head`() {
        var detector = GapDetector(position: 10, carriesEverything: true)
        #expect(detector.checkHead(newest: 10, now: 0) == .upToDate)
        #expect(detector.checkHead(newest: 11, now: 0) == .readHistory(after: 10))
        detector.confirm(upTo: 11)
        #expect(detector.checkHead(newest: 11, now: 0) == .upToDate)
    }

    @Test func `a filtered topic confirms after five seconds behind head, or at once after a reconnection`() {
        var detector = GapDetector(position: 10)
        #expect(detector.checkHead(newest: 20, now: 1_000_000) == .behind)
        #expect(detector.checkHead(newest: 21, now: 5_999_999) == .behind)
        #expect(detector.checkHead(newest: 22, now: 6_000_000) == .readHistory(after: 10))
        detector.confirm(upTo: 22)
        #expect(detector.position == 22)
        #expect(detector.checkHead(newest: 23, now: 7_000_000) == .behind)
        #expect(detector.check(previous: 22, sequence: 23) == .inOrder)
        #expect(detector.checkHead(newest: 24, now: 100_000_000) == .behind)
        detector.recordReconnection()
        #expect(detector.checkHead(newest: 24, now: 100_000_001) == .readHistory(after: 23))
        detector.confirm(upTo: 5)
        #expect(detector.position == 23)
    }
}
