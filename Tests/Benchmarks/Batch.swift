import JSONValue

/// The messages that subscribers received of one batch.
struct Batch {
    let count: Int
    private var received: [Int]
    private var last: [Int64]
    private var lost = 0
    private var delivered = 0
    private var bytes = 0
    private var first: Int64 = 0
    /// The time of the newest message, or of the start of the batch.
    private var newest: Int64 = Clocks.microseconds()
    private var delays: [Int64] = []
    private var open: Int

    init(subscribers: Int, count: Int) {
        self.count = count
        received = Array(repeating: 0, count: subscribers)
        last = Array(repeating: 0, count: subscribers)
        open = subscribers
    }

    /// True if every subscriber is complete, or if messages have stopped: no later message would reveal a loss at the
    /// end.
    var isDone: Bool { open == 0 || Clocks.microseconds() - newest > Self.longestSilence }

    private static let longestSilence: Int64 = 3_000_000

    /// Records one message of a subscriber.
    mutating func record(_ index: Int, _ frame: UnsafeRawBufferPointer) {
        let now = Clocks.microseconds()
        let sequence = LiveFrame.number(LiveFrame.sequence, in: frame) ?? 0
        bytes = frame.count
        if first == 0 { first = now }
        newest = now
        let missed = last[index] == 0 ? 0 : Int(sequence - last[index] - 1)
        last[index] = sequence
        lost += missed
        delivered += 1
        if delays.count < 1_000_000, let date = LiveFrame.number(LiveFrame.date, in: frame) {
            delays.append(Clocks.wallMicroseconds() - date)
        }
        let isOpen = received[index] < count
        received[index] += 1 + missed
        if isOpen, received[index] >= count { open -= 1 }
    }

    var json: JSON {
        let sorted = delays.sorted()
        func delay(_ part: Double) -> JSON { .int(sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * part)]) }
        return [
            "delivered": JSON(delivered), "lost": JSON(max(lost, received.count * count - delivered)),
            "microseconds": .int(newest - first), "bytes": JSON(bytes), "p50": delay(0.5), "p99": delay(0.99),
            "slowest": delay(1),
        ]
    }
}
