import Basics
import CZeroMQ

/// The protection of a socket.
public enum SocketSecurity: Sendable, Hashable {
    /// None: for ipc, where file permissions restrict the socket's folder to its owner, and within the process.
    case none
    /// None, also over TCP on a loopback address: every local user can connect.
    case trustedLoopback
    /// A listening socket with CURVE: everything is encrypted, and the process's ``ZAPAuthenticator`` admits the keys
    /// on the list of the domain. Without a list for the domain, all connections are refused.
    case curveServer(secretKey: CurveSecretKey, domain: String)
    /// A connecting socket with CURVE; it connects only to a server that has the secret key of this public key.
    case curveClient(serverPublicKey: CurvePublicKey, keys: CurveKeyPair)

    /// The ZAP domain of a listening socket; nil for all others.
    public var domain: String? {
        if case .curveServer(_, let domain) = self { return domain }
        return nil
    }

    /// True if the socket uses CURVE.
    public var hasKeys: Bool {
        switch self {
        case .none, .trustedLoopback: false
        case .curveServer, .curveClient: true
        }
    }
}

extension Socket {
    /// `ZMQ_ZAP_ENFORCE_DOMAIN`: zmq.h declares it only for draft builds, though 4.3.4 has the option.
    private static let zapEnforceDomain: Int32 = 93

    /// Sets the security of a socket that will listen at an address.
    func protectServer(_ security: SocketSecurity, at address: EndpointAddress) throws(MessagingError) {
        switch security {
        case .none: guard address.transport != .tcp else { throw .needsCurve(address) }
        case .trustedLoopback: guard address.isLocal else { throw .needsCurve(address) }
        case .curveServer(let secret, let domain):
            // Without an enforced domain, a process without a ZAP handler would admit every key.
            guard !domain.isEmpty, domain.utf8.count < 255 else { throw .wrongSecurity(address) }
            try set(ZMQ_ZAP_DOMAIN, Bytes(domain.utf8))
            try set(Self.zapEnforceDomain, 1 as Int32)
            try set(ZMQ_CURVE_SERVER, 1 as Int32)
            try set(ZMQ_CURVE_SECRETKEY, secret.bytes)
        case .curveClient: throw .wrongSecurity(address)
        }
    }

    /// Sets the security of a socket that will connect to an address.
    func protectClient(_ security: SocketSecurity, to address: EndpointAddress) throws(MessagingError) {
        switch security {
        case .none: guard address.transport != .tcp else { throw .needsCurve(address) }
        case .trustedLoopback: guard address.isLocal else { throw .needsCurve(address) }
        case .curveClient(let server, let keys):
            try set(ZMQ_CURVE_SERVERKEY, server.bytes)
            try set(ZMQ_CURVE_PUBLICKEY, keys.publicKey.bytes)
            try set(ZMQ_CURVE_SECRETKEY, keys.secretKey.bytes)
        case .curveServer: throw .wrongSecurity(address)
        }
    }
}
