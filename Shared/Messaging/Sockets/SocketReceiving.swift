import Basics
import CZeroMQ
import Glibc

extension Socket {
    /// Returns the next message, or `nil` if there is none now. Never waits.
    ///
    /// libzmq delivers a multipart message only when it is complete, so frames beyond a limit are dropped one by one
    /// while they are received and are never held together on this side. The memory that libzmq itself uses for an
    /// unfinished message can be neither bounded nor observed: only trusted peers may reach a socket.
    ///
    /// The leading frames (a routing id) precede the content and are always kept.
    ///
    /// - Parameter knowsPeer: returns true if the address of the peer with a routing id and a descriptor need not be
    ///   read, because it is known
    func receive(
        maxFrames: Int,
        maxBytes: Int,
        leadingFrames: Int = 0,
        wantsPeer: Bool = false,
        knowsPeer: (Bytes, Int32) -> Bool = { _, _ in false }
    ) -> IncomingMessage? {
        var message = IncomingMessage()
        var part = zmq_msg_t()
        return withUnsafeMutablePointer(to: &part) { part in
            zmq_msg_init(part)
            defer { zmq_msg_close(part) }
            while true {
                guard receivePart(part) else { return message.totalFrames == 0 ? nil : message }
                let size = zmq_msg_size(part)
                message.totalFrames += 1
                message.totalBytes += size
                if message.totalFrames - leadingFrames > maxFrames {
                    message.violation = message.violation ?? .tooManyFrames
                } else if message.totalBytes > maxBytes {
                    message.violation = message.violation ?? .messageTooLarge
                }
                if message.violation == nil || message.totalFrames <= leadingFrames {
                    message.frames.append(Bytes(UnsafeRawBufferPointer(start: zmq_msg_data(part), count: size)))
                }
                // Read from a frame after the routing id: 4.3.4's ROUTER loses the metadata of a prefetched routing id
                // frame.
                if wantsPeer, message.totalFrames == leadingFrames + 1 { readPeer(of: part, into: &message, knowsPeer) }
                if zmq_msg_more(part) == 0 { return message }
            }
        }
    }

    private func receivePart(_ part: UnsafeMutablePointer<zmq_msg_t>) -> Bool {
        while true {
            if zmq_msg_recv(part, pointer, ZMQ_DONTWAIT) >= 0 { return true }
            guard zmq_errno() == EINTR else { return false }
        }
    }

    private func readPeer(
        of part: UnsafeMutablePointer<zmq_msg_t>,
        into message: inout IncomingMessage,
        _ knowsPeer: (Bytes, Int32) -> Bool
    ) {
        if let userID = zmq_msg_gets(part, "User-Id") {
            message.curveIdentity = CurveIdentity(userID: String(cString: userID))
        }
        let descriptor = zmq_msg_get(part, ZMQ_SRCFD)
        if descriptor >= 0, let routing = message.frames.first, knowsPeer(routing, descriptor) {
            message.descriptor = descriptor
            return
        }
        guard let address = zmq_msg_gets(part, "Peer-Address") else { return }
        message.peerAddress = String(cString: address)
        if descriptor >= 0 { message.descriptor = descriptor }
    }
}
