public import JSONValue

/// All limits of this module, for ipc and tcp alike.
public struct MessagingLimits: Sendable {
    /// Maximum size of one message with all its frames, in bytes; libzmq closes a peer that announces a larger frame.
    public var maxMessageBytes = 16 << 20
    /// Maximum size of one attachment, in bytes.
    public var maxAttachmentBytes = 8 << 20
    /// Maximum number of frames of one message, including the JSON frame.
    public var maxFrames = 64
    /// Maximum depth and size of the JSON frame. A predicate of 32 levels, each an object with a list, takes some 70
    /// levels of JSON.
    public var json = JSONLimits(depth: 96)
    /// Requests that one connection may have open. A client and a server queue further ones.
    public var requestsPerConnection = 256
    /// Requests that one server may have open on all connections; it queues further ones.
    public var requests = 4096
    /// Requests that each connection may have open even when the server has reached ``requests``, so that a few
    /// connections with long requests do not keep the others out.
    public var requestsAlways: Int { requests / 512 }
    /// Requests of one connection that a server queues while at most half of the memory for requests of its key, or of
    /// all local clients, is in use; further ones are answered with `busy`.
    public var waitingRequestsPerConnection = 16_384
    /// Memory that the requests of one connection may use, from their receipt to the end of their handlers, in bytes:
    /// frames as received, and the JSON values parsed from them.
    ///
    /// At least ``maxMessageBytes``. A message beyond it is dropped and answered with `busy`.
    public var requestBytesPerConnection = 64 << 20
    /// The same for one service, all its servers together. Clients with keys may use half of it, local clients and
    /// other services the rest.
    ///
    /// Messages above ``parseInlineBytes`` may use three quarters of it, so that large requests leave memory for small
    /// ones.
    public var requestBytes = 256 << 20
    /// The same for all connections of one key: half of that of all clients with keys.
    var requestBytesPerKey: Int { requestBytes / 4 }
    /// Bytes that a server queues for one peer: its outbox.
    ///
    /// Notifications and replies wait for capacity; once as many bytes again are waiting, a reply becomes
    /// `limit_exceeded`.
    public var outboxBytesPerConnection = 32 << 20
    /// Bytes of the messages that one ``RequestClient`` or ``Pusher`` has not sent yet. A call and a push wait for
    /// capacity; a stream is refused with `busy`.
    public var sendQueueBytes = 32 << 20
    /// Bytes that a publisher queues for all peers, or that the servers of a service queue for local clients and other
    /// services. The servers queue as many again for clients with keys, of which one key may have half. A server's peer
    /// with at most 64 KiB in flight does not wait for the others. As many bytes again may wait for capacity.
    public var outboxBytes = 256 << 20
    /// The time after which a server ends the connection of a peer that has not read a whole message, if at most half
    /// of ``outboxBytes`` is free: each second the one with the most bytes. In this time a link of 1.2 Mbit/s carries
    /// the largest message.
    public var stallTimeout: Duration = .seconds(120)
    /// Connections of one key from which a server or a publisher receives something; further ones are ended. At most a
    /// quarter of those that ``MessagingContext/limitTCPConnections(to:)`` allows.
    public var connectionsPerKey = Int.max
    /// The same for a puller. Also the number of connections that may be made while it does not read.
    public var pushersPerKey = 16
    /// Messages queued for one peer that does not read; further ones are dropped and counted.
    public var outboxMessagesPerConnection = 65_536
    /// The deadline of a request without `deadlineMs`, from the time at which it was opened. Also the longest time that
    /// the requests of a connection wait without any of them being opened.
    public var defaultDeadline: Duration = .seconds(30)
    /// The longest deadline a request may ask for.
    public var maxDeadline: Duration = .seconds(600)
    /// Maximum byte credit of a request; larger values are clamped.
    public var maxCredit = 64 << 20
    /// Messages received from one socket before the other sockets are served.
    public var receiveBudget = 64
    /// Bytes received from one socket before the other sockets are served.
    public var receiveBudgetBytes = 1 << 20
    /// JSON frames above this size are parsed one after the other on a separate queue, so that large requests block
    /// neither the poll thread nor the cooperative pool.
    public var parseInlineBytes = 64 << 10
    /// libzmq's send high-water mark of a request socket, in messages to one peer. Those of a server also count as
    /// outbox bytes until they have left libzmq, except for the last 8 KiB of small ones.
    public var sendHighWaterMark: Int32 = 256
    /// libzmq's receive high-water mark of a client, in responses and notifications from one peer.
    public var receiveHighWaterMark: Int32 = 128
    /// libzmq's receive high-water mark of a server, in messages from one peer.
    ///
    /// These messages are in memory before the server has seen them, each up to ``maxMessageBytes``.
    public var requestHighWaterMark: Int32 = 16
    /// libzmq's receive high-water mark of a puller, in messages from one peer. Over CURVE the peer's credential always
    /// counts as one of them (4.3.4).
    public var pullHighWaterMark: Int32 = 2
    /// libzmq's send high-water mark of a publisher: messages queued for one subscriber before it loses some. With 8
    /// KiB each this is 8 MiB.
    public var publishHighWaterMark: Int32 = 1000
    /// The shortest time a publisher waits for a subscriber whose queue is full; half a millisecond is added for each
    /// subscription, up to 360 of them.
    public var publishWait: Duration = .milliseconds(20)
    /// Topics of one subscriber. Subscriptions are messages and get lost beyond the subscriber's send high-water mark
    /// (libzmq #4064). A publisher ends a connection with more.
    public var topicsPerSubscriber = 8192
    /// Topics of all subscribers of one publisher, counted once per connection; beyond the limit the connection with
    /// the most topics is ended. A topic of 64 bytes takes about 3 KiB of libzmq's memory.
    public var topics = 100_000
    /// Maximum size of one message of a subscriber in bytes, handshake included; libzmq closes a peer that announces a
    /// larger one.
    public var subscriberMessageBytes = 512
    /// Subscriptions that libzmq queues from one peer. With a longer queue, a peer that subscribes without a pause
    /// keeps a call of libzmq from returning for as long as it sends, because the queue is filled faster than it is
    /// emptied. A peer that has to wait loses nothing.
    ///
    /// Two, not one: over CURVE the peer's credential always counts as one of them (4.3.4).
    public var subscriptionHighWaterMark: Int32 = 2
    /// Messages waiting in a subscriber, a puller or a stream without credit.
    public var inboxMessages = 16_384
    /// Bytes of these messages.
    public var inboxBytes = 64 << 20
    /// Interval of heartbeats. Each wakes both ends of a connection, also of one that nobody uses.
    public var heartbeatInterval: Duration = .seconds(3)
    /// The time without an answer to a heartbeat after which a peer is disconnected: long enough for an overloaded
    /// machine. With the interval before it a lost peer is noticed after 16 seconds at the latest.
    public var heartbeatTimeout: Duration = .seconds(13)
    /// Time limit of the ZeroMQ handshake.
    public var handshakeInterval: Duration = .seconds(5)
    /// How long a closed request socket keeps sending what libzmq had accepted.
    public var linger: Duration = .seconds(2)
    /// The first pause between two attempts to connect.
    public var reconnectInterval: Duration = .milliseconds(50)
    /// The longest pause between two attempts to connect.
    public var reconnectIntervalMax: Duration = .seconds(2)
    /// Length of the queue of connections waiting to be accepted.
    public var backlog: Int32 = 4096
    /// How long a stopping server lets running requests finish before it cancels them.
    public var drainTimeout: Duration = .seconds(10)

    /// Makes the default limits.
    public init() {}
}
