import Basics
import CZeroMQ
import Glibc
import Synchronization

/// The outcome of giving a message to libzmq.
enum SendOutcome: Equatable {
    /// libzmq has accepted the whole message.
    case sent
    /// The queue to this peer is full; nothing was accepted.
    case full
    /// There is no such peer, or no longer.
    case unreachable
    /// Any other error, with its errno; the message is lost.
    case failed(Int32)
}

extension Socket {
    /// Frames of at least this size are passed to libzmq without copying; for smaller ones the callback costs more than
    /// the copy.
    static let zeroCopyThreshold = 64 << 10

    /// Gives a whole message to libzmq, or nothing. Never waits.
    func send(_ message: OutgoingMessage) -> SendOutcome {
        guard let last = message.frames.indices.last else { return .sent }
        // Frames leave in order, so the reservation is released after the last one.
        let isCounted = message.isCounted
        for (index, frame) in message.frames.enumerated() {
            let flags = ZMQ_DONTWAIT | (index == last ? 0 : ZMQ_SNDMORE)
            let isLent = frame.count >= Self.zeroCopyThreshold || (isCounted && index == last)
            let error = isLent ? sendWithoutCopying(frame, message.reservation, flags) : copy(frame, flags)
            if error == 0 { continue }
            switch error {
            case EAGAIN where index == 0: return .full
            case EHOSTUNREACH where index == 0: return .unreachable
            default: return .failed(error)
            }
        }
        return .sent
    }

    private func copy(_ frame: Bytes, _ flags: Int32) -> Int32 {
        while true {
            if zmq_send(pointer, frame, frame.count, flags) >= 0 { return 0 }
            let error = zmq_errno()
            if error != EINTR { return error }
        }
    }

    private func sendWithoutCopying(_ frame: Bytes, _ reservation: ByteReservation?, _ flags: Int32) -> Int32 {
        let loan = LentBuffer(frame, reservation)
        var part = zmq_msg_t()
        return withUnsafeMutablePointer(to: &part) { part in
            let hint = Unmanaged.passRetained(loan)
            // The loan retains the array until libzmq calls back, and a native array's storage does not move while it
            // is neither changed nor released.
            let status = loan.bytes.withUnsafeBytes { content in
                zmq_msg_init_data(
                    part,
                    UnsafeMutableRawPointer(mutating: content.baseAddress),
                    content.count,
                    { _, hint in hint.map { Unmanaged<LentBuffer>.fromOpaque($0).takeRetainedValue().end() } },
                    hint.toOpaque()
                )
            }
            guard status == 0 else {
                hint.release()
                return zmq_errno()
            }
            while true {
                if zmq_msg_send(part, pointer, flags) >= 0 { return 0 }
                let error = zmq_errno()
                if error == EINTR { continue }
                zmq_msg_close(part)
                return error
            }
        }
    }
}

/// An array lent to libzmq, released on its I/O thread.
private final class LentBuffer: Sendable {
    let bytes: Bytes
    let reservation: ByteReservation?
    private let ended = Atomic(false)

    init(_ bytes: Bytes, _ reservation: ByteReservation?) {
        self.bytes = bytes
        self.reservation = reservation
        ended.store(false, ordering: .releasing)
    }

    /// Orders the release after the lending, also for sanitizers that cannot see into libzmq.
    func end() { _ = ended.exchange(true, ordering: .acquiringAndReleasing) }
}
