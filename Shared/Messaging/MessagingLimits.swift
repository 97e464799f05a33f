public import JSONValue

/// Every bound of this room, for ipc and tcp alike.
public struct MessagingLimits: Sendable {
    /// One message with all its frames, in bytes; libzmq closes a peer that announces a larger frame.
    public var maxMessageBytes = 16 << 20
    /// One attachment, in bytes.
    public var maxAttachmentBytes = 8 << 20
    /// Frames of one message, the JSON frame included.
    public var maxFrames = 64
    /// Depth and size of the JSON frame.
    public var json = JSONLimits()
    /// Requests that one connection may have under way; the client keeps further ones to itself until there is room,
    /// the server answers `busy`.
    public var requestsPerConnection = 256
    /// Requests that one server has under way altogether.
    public var requests = 4096
    /// Memory that the requests of one connection may take, from their receipt to the end of their handlers, in bytes:
    /// frames as received, and the JSON values read from them.
    ///
    /// At least ``maxMessageBytes``. A message beyond it is dropped and answered `busy`.
    public var requestBytesPerConnection = 64 << 20
    /// The same of one service, of all its servers together.
    ///
    /// Messages above ``parseInlineBytes`` may take three quarters of it, so that large requests leave room for small
    /// ones.
    public var requestBytes = 256 << 20
    /// Bytes waiting to leave to one peer.
    ///
    /// Notifications and replies wait for room; when as much again is waiting, a reply becomes `limit_exceeded`.
    public var outboxBytesPerConnection = 32 << 20
    /// Bytes waiting to leave a server or publisher altogether.
    public var outboxBytes = 256 << 20
    /// Messages waiting to leave to one peer that does not read; further ones are dropped and counted.
    public var outboxMessagesPerConnection = 65_536
    /// The deadline of a request that names none.
    public var defaultDeadline: Duration = .seconds(30)
    /// The longest deadline a request may ask for.
    public var maxDeadline: Duration = .seconds(600)
    /// The most byte credit that a request may hold; more is taken as this much.
    public var maxCredit = 64 << 20
    /// Messages received from one socket before others get their turn.
    public var receiveBudget = 64
    /// Bytes received from one socket before others get their turn.
    public var receiveBudgetBytes = 1 << 20
    /// JSON frames above this size are parsed one after the other on a thread of their own, so that large requests hold
    /// up neither the poll thread nor the pool.
    public var parseInlineBytes = 64 << 10
    /// Messages that libzmq queues to one peer of a request socket; frames from 64 KiB up count as outbox bytes too.
    public var sendHighWaterMark: Int32 = 256
    /// Messages that libzmq queues from one peer of a client: answers and notifications.
    public var receiveHighWaterMark: Int32 = 128
    /// Messages that libzmq queues from one peer of a server.
    ///
    /// They are in memory before anything here has seen them, each up to ``maxMessageBytes``.
    public var requestHighWaterMark: Int32 = 16
    /// Messages that a publisher queues for one subscriber before it loses some; at 8 KiB each this is 8 MiB.
    public var publishHighWaterMark: Int32 = 1000
    /// How long a publisher waits for a subscriber whose queue is full, at least; half a millisecond more for each
    /// subscription, up to 360 of them.
    public var publishPatience: Duration = .milliseconds(20)
    /// Topics of one subscriber; subscriptions are messages and get lost beyond its send mark (libzmq #4064). A publisher
    /// ends a connection with more.
    public var topicsPerSubscriber = 8192
    /// Topics of all subscribers of one publisher, each counted for each connection; beyond them the connection with the
    /// most is ended. A topic of 64 bytes takes some 3 KiB of libzmq's memory.
    public var topics = 100_000
    /// One message of a subscriber, those of the handshake included; libzmq closes a peer that announces a larger one.
    public var subscriberMessageBytes = 512
    /// Subscriptions that libzmq queues from one peer. With a longer queue a peer that subscribes without a pause keeps one
    /// call of libzmq's busy for as long as it sends, because the queue is filled faster than it is emptied. A peer that
    /// has to wait loses nothing.
    ///
    /// Two, not one: over CURVE libzmq's own message with the peer's credential takes one place for good (4.3.4).
    public var subscriptionHighWaterMark: Int32 = 2
    /// Messages waiting in a subscriber, a puller or a stream without credit.
    public var inboxMessages = 16_384
    /// Bytes waiting there.
    public var inboxBytes = 64 << 20
    /// Heartbeats: how often, and how long a silent peer is believed: long enough for a machine that is overloaded.
    public var heartbeatInterval: Duration = .seconds(1)
    public var heartbeatTimeout: Duration = .seconds(15)
    /// How long a connection may take for ZeroMQ's handshake.
    public var handshakeInterval: Duration = .seconds(5)
    /// How long a closed request socket keeps sending what it took.
    public var linger: Duration = .seconds(2)
    /// The first and the longest pause between two attempts to connect.
    public var reconnectInterval: Duration = .milliseconds(50)
    public var reconnectIntervalMax: Duration = .seconds(2)
    /// Connections waiting to be accepted.
    public var backlog: Int32 = 4096
    /// How long a stopping server lets running requests finish before it cancels them.
    public var drainTimeout: Duration = .seconds(10)

    public init() {}
}
