public import ArgumentParser

/// The source of the library's files: its folder, or a catalog on another machine.
public struct RemoteResourceOptions: ParsableArguments {
    @Flag(
        name: .customLong("remote-resources"),
        help: ArgumentHelp(
            "Read originals from the catalog instead of the library's folder, which is on another machine.",
            discussion: "Also SAFELIGHT_REMOTE_RESOURCES=true. Copies are kept in the cache's folder."
        )
    )
    public var isRemote = false

    @Option(
        name: .customLong("spool-mib"),
        help: "The size limit of these copies, in MiB. (default: SAFELIGHT_SPOOL_MIB, else 2048)"
    )
    public var spoolMiB: Int?

    /// Creates options without flags, resolved from environment variables and the default.
    public init() {}

    /// Returns the size limit of the copies in bytes; nil if the library's folder is read.
    ///
    /// - Throws: ``HostingError/badSetting(source:reason:)``
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> Int64? {
        var isRemote = isRemote
        if !isRemote, let text = environment("SAFELIGHT_REMOTE_RESOURCES") {
            guard let value = Bool(text) else {
                throw .badSetting(source: "SAFELIGHT_REMOTE_RESOURCES", reason: "\(text) is neither true nor false")
            }
            isRemote = value
        }
        let mib = try Environment.number(
            spoolMiB,
            "--spool-mib",
            "SAFELIGHT_SPOOL_MIB",
            in: 1...1 << 30,
            environment: environment
        )
        return isRemote ? Int64(mib ?? 2048) << 20 : nil
    }
}
