public import ArgumentParser
public import Logging
public import Messaging

/// Options for listening for clients on other machines.
public struct ListenOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Also listen on TCP, with CURVE: an address of this machine, or 0.0.0.0 for all. (SAFELIGHT_LISTEN)",
            discussion: "With a port, the six endpoints use that port and the five after it; else 5571 to 5576.",
            valueName: "address[:port]"
        )
    )
    public var listen: String?

    @Option(
        help: ArgumentHelp(
            "Folder of keys, as created by `safelight keys`.",
            discussion: "SAFELIGHT_KEYS, else $XDG_CONFIG_HOME/safelight/keys, else ~/.config/safelight/keys."
        )
    )
    public var keys: String?

    /// Creates options without flags, resolved from environment variables and defaults.
    public init() {}

    /// Returns the network listener; nil if none is configured.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``, ``KeyError``.
    public func resolve(
        logger: Logger,
        environment: (String) -> String? = { Environment[$0] }
    ) throws -> NetworkListener? {
        guard let text = listen ?? environment("SAFELIGHT_LISTEN") else { return nil }
        let folder = try KeyFolder(flag: keys, environment: environment)
        return try NetworkListener(
            TCPHost(text, source: listen == nil ? "SAFELIGHT_LISTEN" : "--listen"),
            folder: folder,
            logger: logger
        )
    }
}

/// A host and the first of its six consecutive TCP ports.
struct TCPHost: Sendable, Equatable {
    let host: String
    /// The first port; 0 if each endpoint uses any free port.
    let firstPort: Int

    /// Parses `host`, `host:port`, `[address]` or `[address]:port`.
    init(_ text: String, source: String) throws(HostingError) {
        var host = text
        var port = EndpointName.firstPort
        let isBare = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !text.hasPrefix("[")
        if !isBare, let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let number = UInt16(text[text.index(after: colon)...]), number <= 65_535 - 5 else {
                throw .badSetting(source: source, reason: "\(text): the port must be a number from 0 to 65530")
            }
            port = Int(number)
            host = String(text[..<colon])
        }
        if isBare { host = "[\(text)]" }
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x2F })
        else {
            throw .badSetting(source: source, reason: "\(text.prefix(80)) is not an address")
        }
        self.host = host
        self.firstPort = port
    }

    func address(of endpoint: EndpointName) throws(MessagingError) -> EndpointAddress {
        let port = firstPort == 0 ? 0 : firstPort + endpoint.port - EndpointName.firstPort
        return try EndpointAddress("tcp://\(host):\(port)")
    }
}

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
    public func security(of endpoint: EndpointName) throws(MessagingError) -> SocketSecurity {
        let list = endpoint.list
        try MessagingContext.shared.admit(to: list.rawValue, logger: logger) { [register] _, key in
            register.name(of: key, on: list)
        }
        return .curveServer(secretKey: pair.secretKey, domain: list.rawValue)
    }

    /// Returns whether an identity is a service, which may act for clients: its key is on the lists `services` and
    /// `requests`.
    public func isService(_ identity: String) -> Bool {
        guard identity.hasPrefix("key:") else { return false }
        return register.isSame(String(identity.dropFirst(4)), on: .services, and: .requests)
    }
}
