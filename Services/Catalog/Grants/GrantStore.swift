import GRDB
import PhotoModel

/// Reads and writes grants, within one transaction.
struct GrantStore {
    let database: Database

    static let schema = """
        CREATE TABLE grants (
            identity TEXT PRIMARY KEY NOT NULL CHECK (length(identity) BETWEEN 1 AND 256),
            status INTEGER NOT NULL CHECK (status BETWEEN 0 AND 4),
            access INTEGER NOT NULL CHECK (access IN (1, 2)),
            scope TEXT NOT NULL CHECK (scope IN ('all', 'limited')),
            consent TEXT NOT NULL CHECK (consent IN ('never', 'destructive', 'always')),
            purpose TEXT NOT NULL,
            client TEXT NOT NULL,
            public_key TEXT,
            date INTEGER NOT NULL,
            decided_by TEXT
        ) STRICT, WITHOUT ROWID;
        """

    private static let columns =
        "identity, status, access, scope, consent, purpose, client, public_key, date, decided_by"

    func all() throws -> [Grant] {
        try Row.fetchAll(database, sql: "SELECT \(Self.columns) FROM grants").map(Grant.init)
    }

    func grant(_ identity: String) throws -> Grant? {
        let statement = try database.cachedStatement(sql: "SELECT \(Self.columns) FROM grants WHERE identity = ?")
        return try Row.fetchOne(statement, arguments: [identity]).map(Grant.init)
    }

    func save(_ grant: Grant) throws {
        try database.run(
            "INSERT OR REPLACE INTO grants (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            [
                grant.identity, grant.status.number, grant.access.number, grant.scope.rawValue, grant.consent.rawValue,
                grant.purpose, grant.client, grant.key, grant.date, grant.decidedBy,
            ]
        )
    }
}

extension Grant {
    fileprivate init(_ row: Row) throws {
        guard let status = AuthorizationStatus(number: row[1]), let access = AccessLevel(number: row[2]),
            let scope = GrantScope(rawValue: row[3]), let consent = ConsentPolicy(rawValue: row[4])
        else { throw DamagedRow("the grant of \(row[0] as String) has unknown values") }
        self.init(
            identity: row[0],
            status: status,
            access: access,
            scope: scope,
            consent: consent,
            purpose: row[5],
            client: row[6],
            key: row[7],
            date: row[8],
            decidedBy: row[9]
        )
    }
}
