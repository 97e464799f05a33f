public import ArgumentParser

/// The option `--store`.
public struct StoreOptions: ParsableArguments {
    /// The address on the command line.
    @Option(
        help: ArgumentHelp(
            "The database of the library on PostgreSQL, as postgresql://host/database. (SAFELIGHT_STORE)",
            discussion: "Default: a file of SQLite in the library's folder."
        )
    )
    public var store: String?

    /// Creates options without an address.
    public init() {}

    /// Returns the address of the flag, else of the environment; nil for a file in the library's folder.
    ///
    /// - Throws: ``HostingError`` if it is not an address of PostgreSQL
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> String? {
        let variable = environment("SAFELIGHT_STORE").flatMap { $0.isEmpty ? nil : $0 }
        guard let address = store ?? variable, address != "sqlite" else { return nil }
        try HostingError.require(
            isPostgreSQL(address),
            store == nil ? "SAFELIGHT_STORE" : "--store",
            "an address postgresql://host/database, or sqlite for a file in the library's folder"
        )
        return address
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
        let variable = environment("SAFELIGHT_STORE_REPLICA").flatMap { $0.isEmpty ? nil : $0 }
        guard let address = storeReplica ?? variable else { return nil }
        try HostingError.require(
            isPostgreSQL(address),
            storeReplica == nil ? "SAFELIGHT_STORE_REPLICA" : "--store-replica",
            "an address postgresql://host/database"
        )
        return address
    }
}

private func isPostgreSQL(_ address: String) -> Bool {
    ["postgresql://", "postgres://"].contains { address.hasPrefix($0) }
}
