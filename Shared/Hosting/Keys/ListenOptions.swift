public import ArgumentParser
public import Logging
import Messaging

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
