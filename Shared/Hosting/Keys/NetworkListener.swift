import ArgumentParser
import Logging
public import Messaging

extension EndpointName {
    static let firstPort = 5571

    /// The list of the keys that may connect.
    var list: KeyList {
        switch self {
        case .catalog, .thumbnailer, .editor, .broker: .requests
        case .feed: .feed
        case .edits: .edits
        }
    }
}

/// The listener for TCP connections: it uses CURVE and accepts only listed keys.
public struct NetworkListener: Sendable {
    private let host: TCPHost
    private let pair: CurveKeyPair
    private let register: KeyRegistry
    private let logger: Logger

    /// Reads the services' key pair.
    init(_ host: TCPHost, folder: KeyFolder, logger: Logger) throws(KeyError) {
        self.host = host
        self.pair = try folder.server()
        self.register = KeyRegistry(folder: folder, logger: logger)
        self.logger = logger
    }

    /// Returns the TCP address of an endpoint.
    public func address(of endpoint: EndpointName) throws(MessagingError) -> EndpointAddress {
        try host.address(of: endpoint)
    }

    /// Returns the security of an endpoint, and registers its key list with the ZAP handler of the process.
    ///
    /// - Parameter approval: decides besides about the owners of listed keys; nil for no further condition
    public func security(
        of endpoint: EndpointName,
        approval: ZAPAuthenticator.Approval? = nil
    ) throws(MessagingError) -> SocketSecurity {
        let list = endpoint.list
        try MessagingContext.shared.admit(
            to: list.rawValue,
            logger: logger,
            approval: approval,
            isService: { [register] name, key in register.name(of: key, on: .services) == name },
            admission: { [register] _, key in register.name(of: key, on: list) }
        )
        return .curveServer(secretKey: pair.secretKey, domain: list.rawValue)
    }

    /// Returns the listed key of an identity, with what its file states; nil if there is none.
    public func key(of identity: String) -> StatedKey? {
        guard identity.hasPrefix("key:") else { return nil }
        return register.key(named: String(identity.dropFirst(4)))
    }

    /// The listed keys of clients, by name.
    public var keys: [StatedKey] { register.keys() }

    /// Returns whether an identity is a service, which may act for clients: its key is on the lists `services` and
    /// `requests`.
    public func isService(_ identity: String) -> Bool {
        guard identity.hasPrefix("key:") else { return false }
        return register.isSame(String(identity.dropFirst(4)), on: .services, and: .requests)
    }
}
