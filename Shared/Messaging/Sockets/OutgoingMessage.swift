import Basics

/// A multipart message to send.
struct OutgoingMessage: Sendable {
    var frames: [Bytes]
    /// Bytes reserved in the outboxes. They are released with the last reference, which for messages of at least
    /// ``countedBytes`` is dropped on libzmq's I/O thread after the kernel has the data.
    var reservation: ByteReservation?

    /// The number of reserved bytes from which a message counts until it has left libzmq; a smaller one counts until
    /// libzmq has accepted it, because the callback costs more than the copy. A server counts small messages again,
    /// together, with the next message of their connection once they have as many bytes.
    static let countedBytes = 4096

    /// True if the message counts until it has left libzmq.
    var isCounted: Bool { (reservation?.bytes ?? 0) >= Self.countedBytes }

    init(_ frames: [Bytes], reservation: ByteReservation? = nil) {
        self.frames = frames
        self.reservation = reservation
    }

    var byteCount: Int { frames.reduce(0) { $0 + $1.count } }
}

/// Bytes acquired from one or more semaphores and released in `deinit`, so that no code path can forget it.
final class ByteReservation: Sendable {
    let bytes: Int
    let semaphores: [ByteSemaphore]
    /// Another reservation, which is kept as long as this one.
    private let other: ByteReservation?

    /// Wraps bytes that were already acquired from each semaphore.
    init(bytes: Int, semaphores: [ByteSemaphore], keeping other: ByteReservation? = nil) {
        self.bytes = bytes
        self.semaphores = semaphores
        self.other = other
    }

    deinit {
        for gate in semaphores { gate.release(bytes) }
    }
}
