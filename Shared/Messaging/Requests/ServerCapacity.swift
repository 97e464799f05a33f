/// The memory that a service has for requests, and for replies that are not sent yet, divided among its clients. Its
/// servers share one instance.
///
/// Local clients and other services have a part of their own, which the other clients cannot use. Of the part of the
/// others, one key with all of its connections has at most half.
public final class ServerCapacity: Sendable {
    /// The part of a group of connections.
    final class Part: Sendable {
        /// The memory of requests, from their receipt to the end of their handlers.
        let requests: MemoryQuota
        /// The memory of messages that wait for capacity.
        let waiting: MemoryQuota
        /// Capacity for messages in flight: that of this part, then that of the larger part that it belongs to.
        let outbox: [ByteSemaphore]
        private let outer: Part?

        fileprivate init(requests: MemoryQuota, outboxBytes: Int, in outer: Part? = nil) {
            self.requests = requests
            self.waiting = MemoryQuota(limit: outboxBytes, partOf: outer?.waiting)
            self.outbox =
                [ByteSemaphore(available: outboxBytes, maxAvailable: outboxBytes)] + (outer?.outbox ?? [])
            self.outer = outer
        }

        /// True if requests may wait until others have ended: they leave half of the memory for those that can begin.
        var requestsMayWait: Bool { requests.isHalfFree && (outer?.requestsMayWait ?? true) }

        /// True if at most half of the capacity for messages in flight is free.
        var isOutboxShort: Bool { outbox[0].isHalfUsed }

        /// True if no byte of it is in use.
        var isIdle: Bool { requests.bytesInUse == 0 && waiting.bytesInUse == 0 && outbox[0].usage.bytes == 0 }
    }

    /// The memory of all requests.
    let requests: MemoryQuota
    /// The part of local clients and of services with keys.
    let local: Part
    /// The part of all other clients with keys.
    let clients: Part
    private let limits: MessagingLimits

    /// Makes the capacity of a service.
    public init(_ limits: MessagingLimits = MessagingLimits()) {
        let maximum = limits.requestBytes
        let requests = MemoryQuota(limit: maximum, limitOfLarge: maximum / 4 * 3)
        self.requests = requests
        self.local = Part(
            requests: MemoryQuota(limit: maximum, partOf: requests),
            outboxBytes: limits.outboxBytes
        )
        self.clients = Part(
            requests: MemoryQuota(limit: maximum / 2, limitOfLarge: maximum / 8 * 3, partOf: requests),
            outboxBytes: limits.outboxBytes
        )
        self.limits = limits
    }

    /// Makes the part of one key: half of that of all clients.
    func makePartOfKey() -> Part {
        Part(
            requests: MemoryQuota(limit: limits.requestBytesPerKey, partOf: clients.requests),
            outboxBytes: limits.outboxBytes / 2,
            in: clients
        )
    }
}
