import GRDB
import PhotoModel

/// The differences that the transactions of one commit make to the library's counters.
struct CounterChanges {
    private var changes: [String: Int] = [:]

    /// Subtracts an asset's state before the change and adds its state after it. Keywords are skipped if they did not
    /// change.
    mutating func count(_ change: EntityChange<Asset>) {
        let (before, after) = (change.before, change.after)
        let haveSameKeywords =
            before?.isVisible ?? false == after?.isVisible ?? false
            && (before?.keywords ?? []) == (after?.keywords ?? [])
        for (asset, step) in [(before, -1), (after, 1)] {
            guard let asset else { continue }
            add(step, to: "assets")
            if asset.isVisible {
                add(step, to: "visible")
                add(step, to: "visible.\(asset.mediaType.rawValue)")
                if asset.isFavorite { add(step, to: "visible.favorite") }
                if !haveSameKeywords { count(keywords: asset.keywords, by: step) }
            }
            if asset.isHidden { add(step, to: "hidden") }
            if asset.trashedDate != nil { add(step, to: "trash") }
        }
        let (old, new) = (before.map(Self.albums) ?? [], after.map(Self.albums) ?? [])
        for album in old where !new.contains(album) { add(-1, to: Self.name(album)) }
        for album in new where !old.contains(album) { add(1, to: Self.name(album)) }
    }

    private mutating func count(keywords: [String], by step: Int) {
        for keyword in Set(keywords) { add(step, to: KeywordSearch.text(keyword).counter) }
        for keyword in Set(keywords.map(folded)) { add(step, to: KeywordSearch.folded(keyword).counter) }
    }

    mutating func add(_ step: Int, to name: String) { changes[name, default: 0] += step }

    mutating func add(_ others: CounterChanges) { changes.merge(others.changes, uniquingKeysWith: +) }

    /// Returns the counters of the smart albums that contain an asset; each counts the result of a fetch without
    /// options.
    static func derivedNames(of asset: Asset) -> [String] { albums(of: asset).map(name) }

    private static func albums(of asset: Asset) -> [SmartAlbum] {
        let (isVisible, isInHidden) = (asset.isVisible, asset.isShownToHiddenFetch)
        return SmartAlbum.albums(inMask: SmartAlbum.mask(of: asset))
            .filter { $0 == .allHidden ? isInHidden : isVisible }
    }

    static func name(_ album: SmartAlbum) -> String { "smart.\(album.rawValue)" }

    func save(_ database: Database) throws {
        for (name, change) in changes where change != 0 { try Self.add(change, to: name, database) }
    }

    static func add(_ change: Int, to name: String, _ database: Database) throws {
        try database.run(
            "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = value + ?",
            [name, max(0, change), change]
        )
    }

    static func set(_ value: Int64, as name: String, _ database: Database) throws {
        try database.run("INSERT OR REPLACE INTO counter VALUES (?, ?)", [name, value])
    }

    static func value(of name: String, _ database: Database) throws -> Int {
        let statement = try database.cachedStatement(sql: "SELECT value FROM counter WHERE name = ?")
        return try Int.fetchOne(statement, arguments: [name]) ?? 0
    }
}
