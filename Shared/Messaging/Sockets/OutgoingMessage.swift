import Basics

/// A multipart message to send.
struct OutgoingMessage: Sendable {
    var frames: [Bytes]
    /// Bytes reserved in the outboxes. They are released with the last reference, which for large frames
    /// is dropped on libzmq's I/O thread after the kernel has the data.
    var reservation: ByteReservation?

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

    /// Wraps bytes that were already acquired from each semaphore.
    init(bytes: Int, semaphores: [ByteSemaphore]) {
        self.bytes = bytes
        self.semaphores = semaphores
    }

    deinit {
        for gate in semaphores { gate.release(bytes) }
    }
}
