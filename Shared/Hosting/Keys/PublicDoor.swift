public import ArgumentParser
public import Logging
public import Messaging

/// Where a service listens for clients on other machines.
public struct ListenOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Listen on TCP too, with CURVE: an address of this machine, or 0.0.0.0 for all. (SAFELIGHT_LISTEN)",
            discussion: "With a port, the six endpoints have it and those that follow; else 5571 to 5576.",
            valueName: "address[:port]"
        )
    )
    public var listen: String?

    @Option(
        help: ArgumentHelp(
            "The folder of keys for it, as `safelight keys` makes it.",
            discussion: "SAFELIGHT_KEYS, else $XDG_CONFIG_HOME/safelight/keys, else ~/.config/safelight/keys."
        )
    )
    public var keys: String?

    /// No flags: variables and defaults.
    public init() {}

    /// The door that follows; nil where none was asked for.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``, ``KeyError``.
    public func resolve(
        logger: Logger,
        environment: (String) -> String? = { Environment[$0] }
    ) throws -> PublicDoor? {
        guard let text = listen ?? environment("SAFELIGHT_LISTEN") else { return nil }
        let folder = try KeyFolder(flag: keys, environment: environment)
        return try PublicDoor(
            TCPHost(text, source: listen == nil ? "SAFELIGHT_LISTEN" : "--listen"),
            folder: folder,
            logger: logger
        )
    }
}

/// A host, and the first of the house's six TCP ports there.
struct TCPHost: Sendable, Equatable {
    let host: String
    /// 0: each endpoint takes any free port.
    let firstPort: Int

    /// Reads `host`, `host:port`, `[address]` or `[address]:port`.
    init(_ text: String, source: String) throws(HostingError) {
        var host = text
        var port = EndpointName.firstPort
        let isBare = text.utf8.count { $0 == UInt8(ascii: ":") } > 1 && !text.hasPrefix("[")
        if !isBare, let colon = text.lastIndex(of: ":"), !text.hasSuffix("]") {
            guard let number = UInt16(text[text.index(after: colon)...]), number <= 65_535 - 5 else {
                throw .badSetting(source: source, reason: "\(text): the port is a number from 0 to 65530")
            }
            port = Int(number)
            host = String(text[..<colon])
        }
        if isBare { host = "[\(text)]" }
        guard !host.isEmpty, host.utf8.count <= 255, host.utf8.allSatisfy({ (0x21...0x7E).contains($0) && $0 != 0x2F })
        else {
            throw .badSetting(source: source, reason: "\(text.prefix(80)) is no address")
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

    /// The list that says who may connect.
    var list: KeyList {
        switch self {
        case .catalog, .thumbnailer, .editor, .broker: .requests
        case .feed: .feed
        case .edits: .edits
        }
    }
}

/// The house's door to the network: CURVE, and only keys on a list come in.
public struct PublicDoor: Sendable {
    private let host: TCPHost
    private let pair: CurveKeyPair
    private let register: KeyRegister
    private let logger: Logger

    /// Reads the services' own key.
    init(_ host: TCPHost, folder: KeyFolder, logger: Logger) throws(KeyError) {
        self.host = host
        self.pair = try folder.server()
        self.register = KeyRegister(folder: folder, logger: logger)
        self.logger = logger
    }

    /// Where an endpoint listens.
    public func address(of endpoint: EndpointName) throws(MessagingError) -> EndpointAddress {
        try host.address(of: endpoint)
    }

    /// How an endpoint is protected; from then on the process' doorkeeper asks the endpoint's list.
    public func security(of endpoint: EndpointName) throws(MessagingError) -> SocketSecurity {
        let list = endpoint.list
        try MessagingContext.shared.admit(to: list.rawValue, logger: logger) { [register] _, key in
            register.name(of: key, on: list)
        }
        return .curveServer(secretKey: pair.secretKey, domain: list.rawValue)
    }

    /// Whether the holder of an identity is a service, which may act for others: its key is on the list `services` and
    /// on `requests`.
    public func isService(_ identity: String) -> Bool {
        guard identity.hasPrefix("key:") else { return false }
        return register.isSame(String(identity.dropFirst(4)), on: .services, and: .requests)
    }
}
