import CZeroMQ

/// How a socket is protected.
public enum SocketSecurity: Sendable, Hashable {
    /// Not at all: for ipc, whose folder only its owner may enter, and within the process.
    case none
    /// Not at all, also over TCP on a loopback address: every local user can connect.
    case trustedLoopback
    /// The side that listens: everything is encrypted, and the process' ``Doorkeeper`` decides by the list of the domain
    /// who may connect. While no list is given for the domain, nobody may.
    case curveServer(secretKey: CurveSecretKey, domain: String)
    /// The side that connects: to the holder of this public key and nobody else.
    case curveClient(serverPublicKey: CurvePublicKey, keys: CurveKeyPair)

    /// The domain of a server's list.
    public var domain: String? {
        if case .curveServer(_, let domain) = self { return domain }
        return nil
    }

    /// Whether a connection shows keys.
    public var hasKeys: Bool {
        switch self {
        case .none, .trustedLoopback: false
        case .curveServer, .curveClient: true
        }
    }
}

extension Socket {
    /// zmq.h hides the number behind its guard for drafts, though 4.3.4 has the option.
    private static let zapEnforceDomain: Int32 = 93

    /// Protects a socket that will listen at an address.
    func protectServer(_ security: SocketSecurity, at address: EndpointAddress) throws(MessagingError) {
        switch security {
        case .none: guard address.transport != .tcp else { throw .needsCurve(address) }
        case .trustedLoopback: guard address.isLocal else { throw .needsCurve(address) }
        case .curveServer(let secret, let domain):
            // Without a domain, and without enforcing it, a process whose doorkeeper is missing would let everyone in.
            guard !domain.isEmpty, domain.utf8.count < 255 else { throw .wrongSecurity(address) }
            try set(ZMQ_ZAP_DOMAIN, Bytes(domain.utf8))
            try set(Self.zapEnforceDomain, 1 as Int32)
            try set(ZMQ_CURVE_SERVER, 1 as Int32)
            try set(ZMQ_CURVE_SECRETKEY, secret.bytes)
        case .curveClient: throw .wrongSecurity(address)
        }
    }

    /// Protects a socket that will connect to an address.
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
