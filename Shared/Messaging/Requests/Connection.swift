import Basics
import DequeModule
import JSONValue

/// The state that a server keeps for one peer; used on the poll thread only.
final class Connection {
    let id: ConnectionID
    let descriptor: Int32?
    let identity: String
    /// The peer's key; nil without CURVE.
    let curveIdentity: CurveIdentity?
    /// The access of the identity as far as the handler knows it; nil if it keeps none.
    var cachedPermission: CachedPermission?
    /// The part of the server's capacity that it shares with other connections.
    let part: ServerCapacity.Part
    /// Capacity for messages on their way to this peer.
    let outbox: ConnectionOutbox
    /// Requests without a response yet.
    var open: [JSON: OpenRequest] = [:]
    /// Handler tasks that still run for this connection, including those already answered.
    var running = 0
    /// Messages that libzmq did not accept yet.
    var queue: Deque<OutgoingMessage> = []
    /// The bytes of small messages that libzmq has accepted and that are counted with the next message.
    var uncountedBytes = 0
    /// The messages that had left libzmq when this was last looked at, and since when there were no more.
    var stall: (releases: Int, since: Int64)?
    /// True if its key had as many connections as it may when this one was made.
    var isExcess = false
    /// True once the server has ended it; its end is not reported yet.
    var isEnding = false
    /// Messages that wait because a large one before them is being parsed.
    var held: Deque<(message: IncomingMessage, prefix: [Bytes])> = []
    /// Requests that wait until others have ended.
    var waiting = WaitingRequests()
    /// The time at which a waiting request was last opened, or the first began to wait.
    var lastStart: Int64 = 0
    /// True while it is among the connections whose next waiting request may be opened.
    var hasTurn = false
    /// The memory used by its requests.
    let memory: MemoryQuota
    var isParsing = false

    init(
        id: ConnectionID,
        message: IncomingMessage,
        transport: EndpointAddress.Transport,
        limits: MessagingLimits,
        part: ServerCapacity.Part
    ) {
        self.id = id
        self.descriptor = message.descriptor
        self.identity = Self.identity(of: message, over: transport)
        self.curveIdentity = message.curveIdentity
        self.part = part
        self.outbox = ConnectionOutbox(limits, in: part)
        self.memory = MemoryQuota(limit: limits.requestBytesPerConnection, partOf: part.requests)
    }

    /// Returns the peer's identity: the name of its key over CURVE; over ipc the uid from libzmq's
    /// `localhost:uid:gid:pid`, which the kernel vouches for; otherwise `loopback`.
    static func identity(of message: IncomingMessage, over transport: EndpointAddress.Transport) -> String {
        if let curveIdentity = message.curveIdentity { return curveIdentity.identity }
        guard transport == .ipc, let peerAddress = message.peerAddress else { return "loopback" }
        let parts = peerAddress.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count >= 3, let uid = UInt32(parts[parts.count - 3]) else { return "loopback" }
        return "uid:\(uid)"
    }

    /// True if the connection can be removed without losing anything.
    var isIdle: Bool {
        open.isEmpty && running == 0 && queue.isEmpty && held.isEmpty && waiting.isEmpty && !isParsing
    }
}
