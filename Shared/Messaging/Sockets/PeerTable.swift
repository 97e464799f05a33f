import Basics
import CZeroMQ

/// The connections of one socket by descriptor: their keys, and which of them have to end so that others can connect.
///
/// libzmq reports a connection without the key of its peer, and the key with each message. So the key of a connection
/// is unknown until its first message is read.
final class PeerTable {
    /// A connection, until its descriptor is closed.
    struct Peer {
        let descriptor: Int32
        /// When it was made, in microseconds. It distinguishes the connection from others with its descriptor.
        let since: Int64
        /// True if a message of it has been read.
        fileprivate(set) var hasSent = false
        /// True if a whole message of it has been read since the last ``endless(at:above:bytesReceived:)``.
        fileprivate var hasDelivered = false
        /// The bytes that had been received on it at the last ``endless(at:above:bytesReceived:)``.
        fileprivate var bytesReceived: Int64 = 0
        /// Those of them that came after its last whole message, without heartbeats, as far as is known.
        fileprivate var unfinishedBytes: Int64 = 0
        /// The key of its peer; nil while it is not known, and without CURVE.
        fileprivate var key: String?
        fileprivate var isOfClient = false
        fileprivate var isExcess = false
        fileprivate var isEnding = false

        fileprivate var isSilent: Bool { !hasSent && !isEnding }
    }

    private var peers: [Int32: Peer] = [:]
    private var countByKey: [String: Int] = [:]
    private var silentCount = 0
    private var earliestCheck = Int64.min
    private var earliestEndlessCheck = Int64.min
    private let maxPerKey: Int
    private let maxSilent: Int
    /// The counts of the process; nil for sockets that do not listen on TCP, whose connections are not limited here.
    private let counts: ConnectionCounts?
    /// Returns whether a key is that of a service of the same library on another machine.
    let isService: @Sendable (CurveIdentity) -> Bool

    /// - Parameters:
    ///   - maxPerKey: the maximum number of connections of one key
    ///   - maxSilent: the maximum number of connections that have sent nothing
    init(
        maxPerKey: Int = .max,
        maxSilent: Int = .max,
        counts: ConnectionCounts? = nil,
        isService: @escaping @Sendable (CurveIdentity) -> Bool = { _ in false }
    ) {
        self.maxPerKey = maxPerKey
        self.maxSilent = maxSilent
        self.counts = counts
        self.isService = isService
    }

    /// Makes the table of a socket that is bound to an address.
    convenience init(
        _ context: MessagingContext,
        _ address: EndpointAddress,
        _ security: SocketSecurity,
        maxPerKey: Int,
        maxSilent: Int = .max
    ) {
        let (authenticator, domain) = (context.authenticator, security.domain)
        let counts = address.transport == .tcp ? context.tcpConnections : nil
        self.init(maxPerKey: maxPerKey, maxSilent: maxSilent, counts: counts) { identity in
            domain.map { authenticator.isService(identity, in: $0) } ?? false
        }
    }

    deinit { removeAll() }

    /// The number of open connections.
    var count: Int { peers.count }

    subscript(descriptor: Int32) -> Peer? { peers[descriptor] }

    /// Adds a connection.
    func opened(_ descriptor: Int32, at now: Int64) {
        closed(descriptor)
        change(descriptor, to: Peer(descriptor: descriptor, since: now))
        counts?.add(1)
    }

    /// Removes a connection.
    ///
    /// - Returns: its key if this was the last connection of it
    @discardableResult
    func closed(_ descriptor: Int32) -> String? {
        guard let peer = peers[descriptor] else { return nil }
        change(descriptor, to: nil)
        counts?.add(-1)
        return uncount(peer)
    }

    /// Removes all connections.
    func removeAll() { for descriptor in Array(peers.keys) { closed(descriptor) } }

    /// Records the key of a connection when a message of it is read. A connection that has ended is not added again:
    /// libzmq also delivers the messages that it had read before the end, when the descriptor may belong to something
    /// else.
    ///
    /// - Returns: false if the connection has to end, because its key has too many
    func identify(_ descriptor: Int32, as identity: CurveIdentity?) -> Bool {
        guard var peer = peers[descriptor] else { return true }
        guard !peer.hasSent || peer.key != identity?.key else { return !peer.isExcess }
        // The earlier message may have been one of the descriptor's previous connection.
        _ = uncount(peer)
        peer.hasSent = true
        peer.key = identity?.key
        (peer.isOfClient, peer.isExcess) = (false, false)
        if let identity {
            let count = (countByKey[identity.key] ?? 0) + 1
            countByKey[identity.key] = count
            peer.isExcess = count > min(maxPerKey, counts?.maxPerKey ?? .max)
            if !isService(identity) {
                peer.isOfClient = true
                counts?.addOfClients(1)
                peer.isExcess = peer.isExcess || counts?.isFull(forKeyWith: count) == true
            }
        }
        change(descriptor, to: peer)
        return !peer.isExcess
    }

    /// Notes that a whole message of a connection has been read.
    func delivered(_ descriptor: Int32) {
        guard counts != nil, peers[descriptor]?.hasDelivered == false else { return }
        peers[descriptor]?.hasDelivered = true
    }

    private func change(_ descriptor: Int32, to peer: Peer?) {
        if peers[descriptor]?.isSilent == true { silentCount -= 1 }
        if peer?.isSilent == true { silentCount += 1 }
        peers[descriptor] = peer
    }

    /// Removes a connection from the counts of its key and of the process.
    ///
    /// - Returns: the key if no other connection has it
    private func uncount(_ peer: Peer) -> String? {
        if peer.isOfClient { counts?.addOfClients(-1) }
        guard let key = peer.key, let count = countByKey[key] else { return nil }
        countByKey[key] = count > 1 ? count - 1 : nil
        return count > 1 ? nil : key
    }
}

// MARK: - Connections that end

extension PeerTable {
    /// The time after which a connection that has sent nothing may be ended, in microseconds.
    private static var silentTimeout: Int64 { 30_000_000 }
    private static var checkInterval: Int64 { 1_000_000 }

    /// Returns the connections to end because they have sent nothing, the oldest first: at once those above three
    /// quarters of the process's connections or above the maximum of the socket, and after half a minute those above
    /// half of the process's. Returns none if called again within a second.
    func silent(at now: Int64) -> [Peer] {
        guard now >= nextCheck else { return [] }
        earliestCheck = now.addingClamped(Self.checkInterval)
        let surplus = surplus
        return allSilent.prefix(surplus.afterTimeout).enumerated().filter { index, peer in
            index < surplus.atOnce || peer.since <= now.addingClamped(-Self.silentTimeout)
        }.map { $0.element }
    }

    /// The connections that have sent nothing, the oldest first.
    var allSilent: [Peer] { peers.values.filter { $0.isSilent }.sorted { $0.since < $1.since } }

    /// The time of the next call of ``silent(at:)``; `.max` while there is no need for one.
    var nextCheck: Int64 { silentCount > 0 && surplus.afterTimeout > 0 ? earliestCheck : .max }

    private var surplus: (afterTimeout: Int, atOnce: Int) {
        guard let ofProcess = counts?.surplus else { return (0, 0) }
        let own = max(0, silentCount - maxSilent)
        return (max(own, ofProcess.ofHalf), max(own, ofProcess.ofThreeQuarters))
    }

    /// Returns the connections to end because they send a message without an end: libzmq keeps all its parts in memory
    /// and has no limit for them. Checks only connections over TCP, every quarter of a second.
    ///
    /// - Parameters:
    ///   - limit: the bytes that a connection may send after its last whole message
    ///   - bytesReceived: returns the bytes that a descriptor has received; negative if they are not known
    func endless(
        at now: Int64,
        above limit: Int,
        bytesReceived: (Int32) -> Int64 = safelight_bytes_received
    ) -> [Peer] {
        guard now >= nextEndlessMessageCheck else { return [] }
        earliestEndlessCheck = now.addingClamped(Self.endlessCheckInterval)
        var found: [Peer] = []
        for descriptor in Array(peers.keys) {
            guard var peer = peers[descriptor], !peer.isEnding else { continue }
            let bytes = bytesReceived(descriptor)
            let newBytes = bytes - peer.bytesReceived
            if newBytes > Self.heartbeatBytes { peer.unfinishedBytes += newBytes }
            if peer.hasDelivered { peer.unfinishedBytes = 0 }
            (peer.bytesReceived, peer.hasDelivered) = (bytes, false)
            peers[descriptor] = peer
            if peer.unfinishedBytes > limit { found.append(peer) }
        }
        return found
    }

    private static var endlessCheckInterval: Int64 { 250_000 }

    /// The bytes between two checks that are ignored, because they may be heartbeats. A subscriber that sends nothing
    /// else, 28 bytes a second over CURVE, would otherwise exceed the limit after a week.
    private static var heartbeatBytes: Int64 { 256 }

    /// The time of the next call of ``endless(at:above:bytesReceived:)``; `.max` while there is no need for one.
    var nextEndlessMessageCheck: Int64 { counts == nil || peers.isEmpty ? .max : earliestEndlessCheck }

    /// Ends a connection; libzmq then reports its end like any other.
    ///
    /// - Parameter readEvents: reads the events that libzmq has reported
    /// - Returns: false if it has ended, or has been ended before
    func end(_ peer: Peer, readingEvents readEvents: () -> Void) -> Bool {
        let isShutDown = Socket.shutDown(peer.descriptor) {
            readEvents()
            return isOpen(peer)
        }
        guard isShutDown, var ending = peers[peer.descriptor] else { return isShutDown }
        ending.isEnding = true
        change(peer.descriptor, to: ending)
        return true
    }

    /// Returns whether the connection is open and is not being ended.
    func isOpen(_ peer: Peer) -> Bool {
        guard let found = peers[peer.descriptor] else { return false }
        return found.since == peer.since && !found.isEnding
    }
}
