import Basics
import Logging

extension RequestServer {
    /// Ends a connection that does not read, at most once a second while less than half of the outbox is free.
    func endStalled(at now: Int64) {
        guard now >= outboxCheck else { return }
        outboxCheck = now.addingClamped(Self.outboxCheckInterval)
        let wasShort = isOutboxShort
        isOutboxShort = outboxSemaphore.available < limits.outboxBytes / 2
        guard isOutboxShort, let connection = state.stalledConnection(at: now, isFirst: !wasShort) else { return }
        disconnect(connection, "it has read no whole message for long, and its replies keep those of others waiting")
    }

    private static let outboxCheckInterval: Int64 = 1_000_000

    /// Ends a connection; libzmq then reports its end like any other.
    func disconnect(_ connection: Connection, _ reason: String) {
        guard !connection.isEnding, let descriptor = connection.descriptor else { return }
        let isShutDown = Socket.shutDown(descriptor) {
            for event in socketBox.socket?.events() ?? [] { handle(event) }
            return state.connections[connection.id] === connection && state.connections.isSoleOwner(connection)
        }
        guard isShutDown else { return }
        connection.isEnding = true
        state.metrics.connectionsEnded += 1
        guard let count = disconnections.count(at: clock.nowMicroseconds()) else { return }
        logger.warning(
            "connection ended",
            metadata: [
                "address": "\(boundAddress)", "identity": "\(connection.identity)", "reason": "\(reason)",
                "disconnected": "\(count)",
            ]
        )
    }
}
