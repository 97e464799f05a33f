import JSONValue

/// The capacity for messages in flight to one connection.
///
/// A message waits for capacity of the connection and of the parts of the server's capacity to which the connection
/// belongs. While few bytes are in flight to the connection, its messages wait for no other connection, and are counted
/// for the connection only.
final class ConnectionOutbox: Sendable {
    /// The capacity of the connection alone.
    private let own: ByteSemaphore
    /// The semaphores of a message while few bytes are in flight, and of all other messages.
    private let (few, all): ([ByteSemaphore], [ByteSemaphore])
    /// The memory of messages that wait.
    private let waiting: MemoryQuota

    init(_ limits: MessagingLimits, in part: ServerCapacity.Part) {
        let bytes = limits.outboxBytesPerConnection
        let own = ByteSemaphore(available: bytes, maxAvailable: bytes, maxWaitingBytes: bytes)
        self.own = own
        (few, all) = ([own], [own] + part.outbox)
        waiting = part.waiting
    }

    /// The bytes in flight, and a number that grows when a message has left libzmq.
    var usage: (bytes: Int, releases: Int) { own.usage }

    /// Reserves capacity for a message if that is possible without waiting.
    func tryReserve(_ bytes: Int) -> ByteReservation? {
        if own.tryAcquireFew(bytes) { return ByteReservation(bytes: bytes, semaphores: few) }
        var acquired = 0
        while acquired < all.count, all[acquired].tryAcquire(bytes) { acquired += 1 }
        guard acquired < all.count else { return ByteReservation(bytes: bytes, semaphores: all) }
        for semaphore in all[..<acquired] { semaphore.release(bytes, isSent: false) }
        return nil
    }

    /// Reserves capacity for a message, waiting if necessary.
    ///
    /// - Returns: the reservation that releases the capacity, or the outcome that prevented it
    func reserve(_ bytes: Int) async -> Result<ByteReservation, ReservationRefused> {
        if let reservation = tryReserve(bytes) { return .success(reservation) }
        guard waiting.tryAdd(bytes) else {
            return .failure(ReservationRefused(outcome: .refused, isOfAllPeers: true))
        }
        defer { waiting.add(-bytes) }
        for (index, semaphore) in all.enumerated() {
            let outcome = await semaphore.acquire(bytes)
            guard outcome == .acquired else {
                for earlier in all[..<index] { earlier.release(bytes, isSent: false) }
                return .failure(ReservationRefused(outcome: outcome, isOfAllPeers: index > 0))
            }
        }
        return .success(ByteReservation(bytes: bytes, semaphores: all))
    }

    /// Reserves capacity even if none is left: for small messages that must be sent in any case.
    ///
    /// - Parameter other: another reservation, which is kept as long as this one
    func reserveWithoutWaiting(_ bytes: Int, keeping other: ByteReservation? = nil) -> ByteReservation {
        if own.tryAcquireFew(bytes) { return ByteReservation(bytes: bytes, semaphores: few, keeping: other) }
        for semaphore in all { semaphore.acquireWithoutWaiting(bytes) }
        return ByteReservation(bytes: bytes, semaphores: all, keeping: other)
    }

    /// Ends the waits for capacity of this connection, because it has ended.
    func close() { own.close() }
}

/// The reason why no capacity was reserved.
struct ReservationRefused: Error {
    let outcome: ByteSemaphore.Outcome
    /// True if the capacity that several peers share is used up; false for that of the message's own peer.
    let isOfAllPeers: Bool

    /// The error of a message that was refused because too many bytes wait.
    ///
    /// - Parameter advice: what the peer can do about its own messages
    func error(_ advice: String) -> RPCError {
        isOfAllPeers
            ? .limitExceeded(
                "too many bytes are queued for all connections of this key, or of all clients together; "
                    + "\(advice), or try again later"
            )
            : .limitExceeded("too many bytes are queued for this peer; \(advice)")
    }
}
