public import ArgumentParser

/// The option `--store`.
public struct StoreOptions: ParsableArguments {
    /// The address on the command line.
    @Option(
        help: ArgumentHelp(
            "The database of the library on PostgreSQL, as postgresql://host/database. (SAFELIGHT_STORE)",
            discussion: "Default: an SQLite file in the library's folder."
        )
    )
    public var store: String?

    /// Creates options without an address.
    public init() {}

    /// Returns the address of the flag, else of the environment; nil for a file in the library's folder.
    ///
    /// - Throws: ``HostingError`` if it is not an address of PostgreSQL
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> String? {
        let expected = "an address postgresql://host/database, or sqlite for a file in the library's folder"
        let address = givenAddress(store, "--store", environment, "SAFELIGHT_STORE")
        guard let address, address.text != "sqlite" else { return nil }
        return try address.checked(expected)
    }
}

/// The option `--store-replica`.
public struct StoreReplicaOptions: ParsableArguments {
    /// The address on the command line.
    @Option(
        help: ArgumentHelp(
            "The address of a replica of --store for reads. (SAFELIGHT_STORE_REPLICA)",
            discussion: "It may name several hosts, as --store. Default: reads go to --store."
        )
    )
    public var storeReplica: String?

    /// Creates options without an address.
    public init() {}

    /// Returns the address of the flag, else of the environment; nil if all reads go to the address of `--store`.
    ///
    /// - Throws: ``HostingError`` if it is not an address of PostgreSQL
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> String? {
        try givenAddress(storeReplica, "--store-replica", environment, "SAFELIGHT_STORE_REPLICA")?
            .checked("an address postgresql://host/database")
    }
}

/// An address, and the flag or variable that has it.
private struct GivenAddress {
    let text: String
    let source: String

    func checked(_ expected: String) throws(HostingError) -> String {
        let isPostgreSQL = ["postgresql://", "postgres://"].contains { text.hasPrefix($0) }
        try HostingError.require(isPostgreSQL, source, expected)
        return text
    }
}

/// Returns the address of a flag, else of a variable that is not empty.
private func givenAddress(
    _ flag: String?,
    _ name: String,
    _ environment: (String) -> String?,
    _ variable: String
) -> GivenAddress? {
    if let flag { return GivenAddress(text: flag, source: name) }
    return environment(variable).flatMap { $0.isEmpty ? nil : GivenAddress(text: $0, source: variable) }
}
