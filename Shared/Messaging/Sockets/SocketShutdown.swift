import Glibc

extension Socket {
    /// Ends a connection with `shutdown(2)` on its descriptor: libzmq 4.3.4 has no call for that, but handles the end
    /// of the stream like any other.
    ///
    /// The descriptor may be closed at any time and reused for another connection. libzmq reports the end of a
    /// connection before it closes the descriptor: so if no end has been reported after the descriptor was duplicated,
    /// the duplicate belongs to this connection.
    ///
    /// - Parameter isOpen: reads what libzmq has reported, and returns whether the connection has not ended
    /// - Returns: whether the connection was ended
    static func shutDown(_ descriptor: Int32, if isOpen: () -> Bool) -> Bool {
        let duplicate = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
        guard duplicate >= 0 else { return false }
        defer { Glibc.close(duplicate) }
        return isOpen() && Glibc.shutdown(duplicate, Int32(SHUT_RDWR)) == 0
    }
}
