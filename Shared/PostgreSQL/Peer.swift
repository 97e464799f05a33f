import CPQ
import Glibc

extension PostgreSQLConnection {
    /// The server at the other end of a connection, for threads that do not use the connection.
    public final class Peer: Sendable {
        /// The address and the port of the server: the same for two connections only if they lead to the same one.
        public let server: String
        /// A duplicate of the descriptor of the connection's socket, because libpq may close its own at any time.
        private let descriptor: Int32

        init(_ connection: OpaquePointer) {
            let address = PQhostaddr(connection).map { String(cString: $0) } ?? ""
            let host = address.isEmpty ? PQhost(connection).map { String(cString: $0) } ?? "" : address
            server = host + ":" + (PQport(connection).map { String(cString: $0) } ?? "")
            descriptor = fcntl(PQsocket(connection), F_DUPFD_CLOEXEC, 0)
        }

        deinit { if descriptor >= 0 { close(descriptor) } }

        /// Ends the connection: work that runs on it fails at once as disconnected.
        public func disconnect() { if descriptor >= 0 { shutdown(descriptor, Int32(SHUT_RDWR)) } }
    }
}
