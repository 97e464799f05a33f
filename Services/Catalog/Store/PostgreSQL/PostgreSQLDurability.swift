import JSONValue
import PostgreSQL

/// The settings of a server that decide which failures an acknowledged change survives.
struct PostgreSQLDurability: Sendable, Equatable {
    var version = ""
    /// `synchronous_commit`: `off` acknowledges commits before they are on any disk.
    var synchronousCommit = "on"
    /// `synchronous_standby_names`; empty if commits wait for no replica.
    var standbys = ""
    /// False if the server does not sync its files at all.
    var syncsFiles = true
    /// False if a page that was written only partly before a power failure cannot be repaired.
    var writesFullPages = true

    init() {}

    init(_ connection: PostgreSQLConnection) throws(PostgreSQLError) {
        let settings = try connection.execute(
            """
            SELECT current_setting('synchronous_commit'), current_setting('synchronous_standby_names'),
                current_setting('fsync') = 'on', current_setting('full_page_writes') = 'on'
            """
        )
        version = connection.serverVersion
        (synchronousCommit, standbys) = (settings.text(0, 0), settings.text(0, 1))
        syncsFiles = settings.int64(0, 2) != 0
        writesFullPages = settings.int64(0, 3) != 0
    }

    /// The loss that the settings allow; nil if an acknowledged change survives a power failure of the server.
    var problem: String? {
        guard synchronousCommit == "off" else { return nil }
        return "PostgreSQL has synchronous_commit=off: changes that were acknowledged can be lost; set it to on"
    }

    /// The members for the method `figures`.
    var json: JSONObject {
        [
            "version": .string(version), "synchronousCommit": .string(synchronousCommit),
            "synchronousStandbys": .string(standbys), "fsync": .bool(syncsFiles),
            "fullPageWrites": .bool(writesFullPages),
        ]
    }
}
