import Basics
import JSONValue

/// The reason for the end of a request's task.
enum TerminationReason: Sendable {
    case finished, cancelled, deadline, connectionLost, stopping
}

/// An open request, shared by its task, its notifier and the poll thread.
final class OpenRequest: Sendable {
    let incoming: IncomingRequest
    /// Without the notifier, which refers to this object.
    let context: RequestContext
    /// Frames that precede every message to the client: the routing id and REQ's envelope.
    let prefix: [Bytes]
    let signal = CancellationSignal()
    /// The credit that notifications use; nil if the request was opened without credit.
    let credit: ByteSemaphore?
    /// Outbox capacity of the connection and of the server.
    let semaphores: [ByteSemaphore]
    /// Memory reserved for the request.
    private let reservation: RequestReservation?

    init(
        _ incoming: IncomingRequest,
        _ context: RequestContext,
        prefix: [Bytes],
        credit: ByteSemaphore?,
        semaphores: [ByteSemaphore],
        reservation: RequestReservation?
    ) {
        self.incoming = incoming
        self.context = context
        self.prefix = prefix
        self.credit = credit
        self.semaphores = semaphores
        self.reservation = reservation
    }

    /// Reserves capacity for a message in each outbox on its way, waiting if necessary.
    ///
    /// - Returns: the reservation that releases the capacity, or the outcome that prevented it.
    func reserveBytes(_ bytes: Int) async -> Result<ByteReservation, ReservationRefused> {
        var acquired: [ByteSemaphore] = []
        for gate in semaphores {
            var outcome = ByteSemaphore.Outcome.acquired
            let isAcquired = acquired.first.map { gate.tryAcquire(bytes, for: $0) } ?? false
            if !isAcquired { outcome = await gate.acquire(bytes) }
            guard outcome == .acquired else {
                for gate in acquired { gate.release(bytes) }
                return .failure(ReservationRefused(outcome: outcome, isOfAllPeers: !acquired.isEmpty))
            }
            acquired.append(gate)
        }
        return .success(ByteReservation(bytes: bytes, semaphores: acquired))
    }

    /// Reserves capacity without waiting: for small messages that must be sent in any case.
    func reserveBytesWithoutWaiting(_ bytes: Int) -> ByteReservation {
        for gate in semaphores { gate.acquireWithoutWaiting(bytes) }
        return ByteReservation(bytes: bytes, semaphores: semaphores)
    }
}

struct ReservationRefused: Error {
    let outcome: ByteSemaphore.Outcome
    /// True if the outbox of all peers together has no capacity, not that of the request's own peer.
    let isOfAllPeers: Bool

    /// The error of a message that was refused because too many bytes wait.
    ///
    /// - Parameter advice: what the peer can do about its own messages
    func error(_ advice: String) -> RPCError {
        isOfAllPeers
            ? .limitExceeded("too many bytes are queued for all peers of this service together; try again later")
            : .limitExceeded("too many bytes are queued for this peer; \(advice)")
    }
}

/// An event that tasks send to the poll thread.
enum ServerEvent: Sendable {
    /// A notification about an open request; dropped if the request has been answered meanwhile.
    case notification(OpenRequest, OutgoingMessage)
    /// The response, and the end of the request's task; dropped if the request has been answered meanwhile.
    case answer(OpenRequest, OutgoingMessage, failure: String?)
    /// A large JSON frame has been parsed.
    case parsed(ConnectionID, Envelope, IncomingMessage, prefix: [Bytes])
    /// These public keys were removed from the list.
    case revoked(Set<String>)
    /// The access of these identities has changed.
    case review(Set<String>)
    /// The server must not accept further requests.
    case stop
}
