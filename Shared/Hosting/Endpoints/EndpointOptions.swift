public import ArgumentParser
import Messaging

/// The addresses of the services: a flag, an environment variable and a default for each endpoint.
public struct EndpointOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Folder of the services' sockets. (SAFELIGHT_RUN, else $XDG_RUNTIME_DIR/safelight, else "
                + "/tmp/safelight-<uid>)"
        )
    )
    public var run: String?

    @Option(
        help: ArgumentHelp(
            "Host of services on another machine. --help-hidden shows its keys and ports. (SAFELIGHT_HOST)",
            valueName: "address[:port]"
        )
    )
    public var host: String?

    @Option(
        help: ArgumentHelp(
            "Public key of the services, for TCP. (SAFELIGHT_SERVER_KEY)",
            valueName: "file",
            visibility: .hidden
        )
    )
    public var serverKey: String?

    @Option(
        help: ArgumentHelp(
            "Secret key of this client, for TCP. (SAFELIGHT_CLIENT_KEY)",
            valueName: "file",
            visibility: .hidden
        )
    )
    public var clientKey: String?

    @Flag(
        help: ArgumentHelp(
            "Allow TCP on loopback addresses without keys. (SAFELIGHT_TRUST_LOOPBACK=true)",
            discussion: "Every local user can then connect to the services and read and change the whole library.",
            visibility: .hidden
        )
    )
    public var trustLoopback = false

    @Option(
        help: ArgumentHelp(
            "Address of the catalog; of several catalogs, with commas between them. (SAFELIGHT_CATALOG, else catalog.sock "
                + "in the run folder; with a port in --host that port, and for the others the five after it, else 5571 to "
                + "5576)",
            visibility: .hidden
        )
    )
    public var catalog: String?

    @Option(
        help: ArgumentHelp(
            "Address of the thumbnailer; of several thumbnailers, with commas between them. (SAFELIGHT_THUMBNAILER, else "
                + "thumbnailer.sock in the run folder)",
            visibility: .hidden
        )
    )
    public var thumbnailer: String?

    @Option(
        help: ArgumentHelp(
            "Address of the editor; of several editors, with commas between them. (SAFELIGHT_EDITOR, else editor.sock in "
                + "the run folder)",
            visibility: .hidden
        )
    )
    public var editor: String?

    @Option(
        help: ArgumentHelp(
            "Address of the change-broker. (SAFELIGHT_BROKER, else change-broker.sock in the run folder)",
            visibility: .hidden
        )
    )
    public var broker: String?

    @Option(
        help: ArgumentHelp(
            "Address of the change feed. (SAFELIGHT_FEED, else feed.sock in the run folder)",
            visibility: .hidden
        )
    )
    public var feed: String?

    @Option(
        help: ArgumentHelp(
            "Address for published edits; of several editors, with commas between them. (SAFELIGHT_EDITS, else edits.sock "
                + "in the run folder)",
            visibility: .hidden
        )
    )
    public var edits: String?

    /// Creates options without flags, resolved from environment variables and defaults.
    public init() {}

    /// Returns the addresses; nothing is created or checked on disk.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``, which names the flag or the variable.
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> Endpoints {
        let folder = RunFolder(flag: run, environment: environment)
        var remote: TCPHost?
        if let text = host ?? environment("SAFELIGHT_HOST") {
            remote = try TCPHost(text, source: host == nil ? "SAFELIGHT_HOST" : "--host")
        }
        let local = try localSecurity(environment)
        return try Endpoints(
            folder: folder,
            security: try security(environment) ?? local,
            localSecurity: local
        ) { name throws(HostingError) in
            let flag = flag(for: name)
            var source = flag == nil ? name.variable : "--\(name.flag)"
            do throws(MessagingError) {
                if let text = flag ?? environment(name.variable) { return try addresses(text, of: name) }
                if let remote { return [try remote.address(of: name)] }
                source = RunFolder.source(flag: run, environment: environment)
                return [try EndpointAddress("ipc://\(folder.path)/\(name.file)")]
            } catch {
                throw .badSetting(source: source, reason: "\(error)")
            }
        }
    }

    /// The maximum number of addresses of one service.
    private static let maxInstances = 64

    private func addresses(
        _ text: String,
        of name: EndpointName
    ) throws(MessagingError) -> [EndpointAddress] {
        var texts: [String] = []
        for part in text.split(separator: ",", omittingEmptySubsequences: false) {
            // A comma that no address follows belongs to the path before it.
            if texts.isEmpty || part.contains("://") {
                texts.append(String(part))
            } else {
                texts[texts.count - 1] += "," + part
            }
        }
        guard name.mayHaveInstances || texts.count == 1 else {
            throw .invalidAddress(text, reason: "a library has one \(name.service.rawValue); give one address")
        }
        guard texts.count <= Self.maxInstances else {
            throw .invalidAddress(text.prefix(80) + "…", reason: "a list has at most \(Self.maxInstances) addresses")
        }
        var addresses: [EndpointAddress] = []
        for text in texts {
            let address = try EndpointAddress(text)
            guard !addresses.contains(address) else { throw .invalidAddress(text, reason: "it is on the list twice") }
            addresses.append(address)
        }
        return addresses
    }

    private func localSecurity(_ environment: (String) -> String?) throws(HostingError) -> SocketSecurity {
        if trustLoopback { return .trustedLoopback }
        switch environment("SAFELIGHT_TRUST_LOOPBACK") {
        case nil, "false", "0": return .none
        case "true", "1": return .trustedLoopback
        case let text?:
            throw .badSetting(
                source: "SAFELIGHT_TRUST_LOOPBACK",
                reason: "\(text.prefix(80)) is neither true nor false"
            )
        }
    }

    /// Returns the security of connections over TCP; nil if no keys are configured.
    private func security(_ environment: (String) -> String?) throws(HostingError) -> SocketSecurity? {
        func file(_ flag: String?, _ name: String, _ variable: String) -> (path: String, source: String)? {
            if let flag { return (flag, name) }
            return environment(variable).map { ($0, variable) }
        }
        func read(_ file: (path: String, source: String), isSecret: Bool) throws(HostingError) -> Certificate {
            do throws(KeyError) {
                return try KeyFile.read(file.path, isSecret: isSecret)
            } catch {
                throw .badSetting(source: file.source, reason: "\(error)")
            }
        }
        let server = file(serverKey, "--server-key", "SAFELIGHT_SERVER_KEY")
        let client = file(clientKey, "--client-key", "SAFELIGHT_CLIENT_KEY")
        guard let server else {
            guard let client else { return nil }
            throw .badSetting(source: client.source, reason: "the services' public key is also required: --server-key")
        }
        guard let client else {
            throw .badSetting(source: server.source, reason: "this client's secret key is also required: --client-key")
        }
        let serverKey = try read(server, isSecret: false).publicKey
        guard let keys = try read(client, isSecret: true).pair else {
            throw .badSetting(source: client.source, reason: "\(client.path) has no secret-key: use NAME.key_secret")
        }
        return .curveClient(serverPublicKey: serverKey, keys: keys)
    }

    private func flag(for name: EndpointName) -> String? {
        switch name {
        case .catalog: catalog
        case .thumbnailer: thumbnailer
        case .editor: editor
        case .broker: broker
        case .feed: feed
        case .edits: edits
        }
    }
}
