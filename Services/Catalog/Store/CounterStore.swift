import GRDB
import PhotoModel

/// How the counts of the library move with one transaction.
struct CounterChanges {
    private var changes: [String: Int] = [:]

    mutating func count(_ asset: Asset?, by step: Int) {
        guard let asset else { return }
        changes["assets", default: 0] += step
        if asset.isVisible {
            changes["visible", default: 0] += step
            changes["visible.\(asset.mediaType.rawValue)", default: 0] += step
            if asset.isFavorite { changes["visible.favorite", default: 0] += step }
        }
        if asset.isHidden { changes["hidden", default: 0] += step }
        if asset.trashedDate != nil { changes["trash", default: 0] += step }
        for name in Self.derivedNames(of: asset) { changes[name, default: 0] += step }
    }

    /// The counters of the smart albums that an asset is in: what a fetch of each without options gives.
    static func derivedNames(of asset: Asset) -> [String] {
        SmartAlbum.allCases.filter { album in
            album.contains(asset) && (album == .allHidden ? asset.isShownToHiddenFetch : asset.isVisible)
        }.map(name)
    }

    static func name(_ album: SmartAlbum) -> String { "smart.\(album.rawValue)" }

    func save(_ database: Database) throws {
        for (name, change) in changes where change != 0 { try Self.add(change, to: name, database) }
    }

    static func add(_ change: Int, to name: String, _ database: Database) throws {
        let statement = try database.cachedStatement(
            sql: "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + ?"
        )
        statement.setUncheckedArguments([name, max(0, change), change])
        try statement.execute()
    }

    static func set(_ value: Int64, as name: String, _ database: Database) throws {
        let statement = try database.cachedStatement(sql: "INSERT OR REPLACE INTO counter VALUES (?, ?)")
        statement.setUncheckedArguments([name, value])
        try statement.execute()
    }

    static func value(of name: String, _ database: Database) throws -> Int {
        let statement = try database.cachedStatement(sql: "SELECT value FROM counter WHERE name = ?")
        return try Int.fetchOne(statement, arguments: [name]) ?? 0
    }
}
