import JSONValue

/// The counters of a server since its start.
struct ServerMetrics {
    var requests = 0
    /// Requests that had to wait until others had ended.
    var requestsWaited = 0
    var responses = 0
    /// Responses made on the poll thread, without a task.
    var responsesAtOnce = 0
    var errors: [String: Int] = [:]
    var refusedMessages: [String: Int] = [:]
    var notificationsReceived = 0
    var notificationsSent = 0
    var notificationsDropped = 0
    var responsesDropped = 0
    var messagesDropped = 0
    var peersOpened = 0
    var peersClosed = 0
    /// Connections that the server has ended: of keys with too many, and of peers that did not read, sent nothing, or
    /// sent a message without an end.
    var connectionsEnded = 0
    var handshakesRefused = 0
    var bytesIn = 0
    var bytesOut = 0

    /// Current connections, including those in the handshake.
    var peers: Int { peersOpened - peersClosed }

    func json(
        open: Int,
        waiting: Int,
        running: Int,
        connections: Int,
        seen: Int,
        outboxBytes: Int,
        requestBytes: Int
    ) -> JSONObject {
        [
            "requests": JSON(requests), "answers": JSON(responses),
            "answersAtOnce": JSON(responsesAtOnce), "open": JSON(open), "running": JSON(running),
            "waiting": JSON(waiting), "requestsWaited": JSON(requestsWaited),
            "errors": Self.counts(errors), "decodeErrors": Self.counts(refusedMessages),
            "connections": JSON(connections), "connectionsSeen": JSON(seen), "peers": JSON(peers),
            "peersClosed": JSON(peersClosed), "connectionsEnded": JSON(connectionsEnded),
            "handshakesRefused": JSON(handshakesRefused), "notificationsReceived": JSON(notificationsReceived),
            "notificationsSent": JSON(notificationsSent), "notificationsDropped": JSON(notificationsDropped),
            "answersDropped": JSON(responsesDropped), "messagesDropped": JSON(messagesDropped),
            "bytesIn": JSON(bytesIn), "bytesOut": JSON(bytesOut), "outboxBytes": JSON(outboxBytes),
            "requestBytes": JSON(requestBytes),
        ]
    }

    private static func counts(_ counts: [String: Int]) -> JSON {
        var object = JSONObject()
        for (name, count) in counts.sorted(by: { $0.key < $1.key }) { object[name] = JSON(count) }
        return .object(object)
    }
}
