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
    private let keyPair: CurveKeyPair
    private let registry: KeyRegistry
    private let logger: Logger

    /// Reads the key pair of the services.
    init(_ host: TCPHost, folder: KeyFolder, logger: Logger) throws(KeyError) {
        self.host = host
        self.keyPair = try folder.server()
        self.registry = KeyRegistry(folder: folder, logger: logger)
        self.logger = logger
    }

    /// Returns the TCP address of an endpoint.
    public func address(of endpoint: EndpointName) throws(MessagingError) -> EndpointAddress {
        try host.address(of: endpoint)
    }

    /// Returns the security of an endpoint, and registers its key list with the ZAP handler of the process.
    ///
    /// - Parameter approval: a further condition on the identities of listed keys; nil for none
    public func security(
        of endpoint: EndpointName,
        approval: ZAPAuthenticator.Approval? = nil
    ) throws(MessagingError) -> SocketSecurity {
        let list = endpoint.list
        try MessagingContext.shared.admit(
            to: list.rawValue,
            logger: logger,
            approval: approval,
            isService: { [registry] name, key in registry.name(of: key, on: .services) == name },
            admission: { [registry] _, key in registry.name(of: key, on: list) }
        )
        return .curveServer(secretKey: keyPair.secretKey, domain: list.rawValue)
    }

    /// Returns the list entry of an identity's key; nil if there is none.
    public func key(of identity: String) -> KeyListEntry? {
        guard identity.hasPrefix("key:") else { return nil }
        return registry.key(named: String(identity.dropFirst(4)))
    }

    /// The listed keys of clients, by name.
    public var keys: [KeyListEntry] { registry.keys() }

    /// Returns whether an identity is a service, which may act for clients: its key is on the lists `services` and
    /// `requests`.
    public func isService(_ identity: String) -> Bool {
        guard identity.hasPrefix("key:") else { return false }
        return registry.isSame(String(identity.dropFirst(4)), on: .services, and: .requests)
    }
}
