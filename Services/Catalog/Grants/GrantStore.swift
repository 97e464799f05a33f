import PhotoModel

/// Reads and writes grants, within one transaction.
struct GrantStore {
    let database: SQLConnection

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
            decided_by TEXT,
            asset_count INTEGER NOT NULL,
            list_version INTEGER NOT NULL,
            limited_since INTEGER NOT NULL
        ) STRICT, WITHOUT ROWID;
        CREATE TABLE grant_asset (
            identity TEXT NOT NULL,
            asset TEXT NOT NULL,
            PRIMARY KEY (identity, asset)
        ) STRICT, WITHOUT ROWID;
        """

    private static let columns =
        "identity, status, access, scope, consent, purpose, client, public_key, date, decided_by, asset_count"

    func all() throws -> [Grant] {
        try database.all("SELECT \(Self.columns) FROM grants") { try Grant.init($0) }
    }

    func grant(_ identity: String) throws -> Grant? {
        try database.first("SELECT \(Self.columns) FROM grants WHERE identity = ?", identity) { try Grant.init($0) }
    }

    /// - Parameter sequence: that of the transaction
    func save(_ change: EntityChange<Grant>, _ requested: GrantChange?, sequence: Int64) throws {
        guard let grant = change.after else { return }
        let isOtherList = !grant.added.isEmpty || !grant.removed.isEmpty
        let wasLimited =
            change.before.map { $0.status == .limited && $0.key == grant.key } ?? (requested?.wasLimited == true)
        let begins = grant.status == .limited && !wasLimited
        try database.run(
            """
            INSERT INTO grants (\(Self.columns), list_version, limited_since)
            VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
            ON CONFLICT (identity) DO UPDATE SET status = excluded.status, access = excluded.access,
                scope = excluded.scope, consent = excluded.consent, purpose = excluded.purpose,
                client = excluded.client, public_key = excluded.public_key, date = excluded.date,
                decided_by = excluded.decided_by, asset_count = excluded.asset_count,
                list_version = max(grants.list_version, excluded.list_version),
                limited_since = max(grants.limited_since, excluded.limited_since)
            """,
            grant.identity,
            grant.status.number,
            grant.access.number,
            grant.scope.rawValue,
            grant.consent.rawValue,
            grant.purpose,
            grant.client,
            grant.key,
            grant.date,
            grant.decidedBy,
            grant.assetCount,
            isOtherList ? sequence : 0,
            begins ? sequence : 0
        )
        for id in grant.removed {
            try database.run("DELETE FROM grant_asset WHERE identity = ? AND asset = ?", grant.identity, id.text)
        }
        for id in grant.added {
            try database.run("INSERT OR IGNORE INTO grant_asset VALUES (?, ?)", grant.identity, id.text)
        }
    }

    // MARK: The lists of limited grants

    /// The stored properties of the list of a limited grant, without its assets.
    struct List {
        /// The public key to which the decision applies.
        var key: String?
        /// The sequence of the transaction that changed the list last; 0 if none did.
        var version: Int64
        /// The sequence of the transaction that limited the grant.
        var limitedSince: Int64
    }

    /// Returns the properties of a list; nil if the grant is not limited.
    func list(of identity: String) throws -> List? {
        try database.first(
            "SELECT public_key, list_version, limited_since FROM grants WHERE identity = ? AND status = ?",
            identity,
            AuthorizationStatus.limited.number
        ) { List(key: $0[0], version: $0[1], limitedSince: $0[2]) }
    }

    func listedAssets(of identity: String) throws -> Set<ObjectID> {
        Set(
            try database.all("SELECT asset FROM grant_asset WHERE identity = ?", identity) { $0.text(0) }.compactMap {
                ObjectID($0)
            }
        )
    }

    func isListed(_ id: ObjectID, of identity: String) throws -> Bool {
        try database.first("SELECT 1 FROM grant_asset WHERE identity = ? AND asset = ?", identity, id.text) {
            $0.int(0)
        } != nil
    }
}

extension Grant {
    fileprivate init(_ row: SQLRow) throws {
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
        assetCount = row[10]
    }
}
