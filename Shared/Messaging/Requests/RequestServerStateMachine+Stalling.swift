import Basics

// MARK: - Peers that do not read

extension RequestServerStateMachine {
    /// Returns the connection to end because its peer does not read: of those with much on its way of which nothing has
    /// left for ``MessagingLimits/stallTimeout``, the one with the most bytes. Called while the outbox is short.
    ///
    /// A connection that cannot be ended, because others have its descriptor too, is passed over.
    ///
    /// - Parameter isFirst: true if the outbox was not short the last time; the time without progress begins then
    func stalledConnection(at now: Int64, isFirst: Bool) -> Connection? {
        var largest: (connection: Connection, bytes: Int)?
        for connection in connections.byRouting.values where !connection.isEnding {
            let (bytes, releases) = connection.outboxSemaphore.usage
            guard !isFirst, bytes > Self.stalledBytes, let stall = connection.stall, stall.releases == releases else {
                connection.stall = (releases, now)
                continue
            }
            guard now.addingClamped(-stall.since) >= limits.stallTimeout.microseconds,
                connections.isSoleOwner(connection)
            else { continue }
            if bytes > largest?.bytes ?? 0 { largest = (connection, bytes) }
        }
        return largest?.connection
    }

    /// A connection with fewer bytes on its way is not ended.
    private static var stalledBytes: Int { 1 << 20 }
}
