import JSONValue

/// The messages of one batch that subscribers have received.
struct Batch {
    let count: Int
    /// The number of messages that each subscriber has received or missed.
    private var received: [Int]
    /// The sequence of each subscriber's newest message; 0 before the first one.
    private var lastSequences: [Int64]
    private var lost = 0
    private var delivered = 0
    private var bytes = 0
    private var firstTime: Int64 = 0
    /// The time of the newest message; before the first one, that of the start of the batch.
    private var newestTime: Int64 = Clocks.microseconds()
    private var delays: [Int64] = []
    /// The number of subscribers that still expect messages.
    private var openCount: Int

    init(subscribers: Int, count: Int) {
        self.count = count
        received = Array(repeating: 0, count: subscribers)
        lastSequences = Array(repeating: 0, count: subscribers)
        openCount = subscribers
    }

    /// True if every subscriber has all messages, or if none has arrived for some time: if the last messages are lost,
    /// no later one reveals that.
    var isDone: Bool { openCount == 0 || Clocks.microseconds() - newestTime > Self.maxSilence }

    /// The time without a message after which a batch is done, in microseconds.
    private static let maxSilence: Int64 = 3_000_000

    /// Records one message of a subscriber.
    mutating func record(_ index: Int, _ frame: UnsafeRawBufferPointer) {
        let now = Clocks.microseconds()
        let sequence = LiveFrame.number(LiveFrame.sequence, in: frame) ?? 0
        bytes = frame.count
        if firstTime == 0 { firstTime = now }
        newestTime = now
        let missed = lastSequences[index] == 0 ? 0 : Int(sequence - lastSequences[index] - 1)
        lastSequences[index] = sequence
        lost += missed
        delivered += 1
        if delays.count < 1_000_000, let date = LiveFrame.number(LiveFrame.date, in: frame) {
            delays.append(Clocks.wallMicroseconds() - date)
        }
        let isOpen = received[index] < count
        received[index] += 1 + missed
        if isOpen, received[index] >= count { openCount -= 1 }
    }

    var json: JSON {
        let sorted = delays.sorted()
        func delay(_ fraction: Double) -> JSON {
            .int(sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * fraction)])
        }
        return [
            "delivered": JSON(delivered), "lost": JSON(max(lost, received.count * count - delivered)),
            "microseconds": .int(newestTime - firstTime), "bytes": JSON(bytes), "p50": delay(0.5), "p99": delay(0.99),
            "slowest": delay(1),
        ]
    }
}
