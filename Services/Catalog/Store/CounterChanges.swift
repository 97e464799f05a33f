import PhotoModel

/// The differences that the transactions of one commit make to the library's counters.
struct CounterChanges {
    private var changes: [String: Int] = [:]

    /// Subtracts an asset's state before the change and adds its state after it.
    mutating func count(_ change: EntityChange<Asset>) {
        let (old, new) = (Counted(change.before), Counted(change.after))
        add(new.exists, old.exists, to: "assets")
        add(new.isVisible, old.isVisible, to: "visible")
        if old.isVisible != new.isVisible || old.mediaType != new.mediaType {
            if old.isVisible { add(-1, to: "visible.\(old.mediaType.rawValue)") }
            if new.isVisible { add(1, to: "visible.\(new.mediaType.rawValue)") }
        }
        add(new.isFavorite, old.isFavorite, to: "visible.favorite")
        add(new.isHidden, old.isHidden, to: "hidden")
        add(new.isInTrash, old.isInTrash, to: "trash")
        let albums = old.albums ^ new.albums
        if albums != 0 {
            for album in SmartAlbum.albums(inMask: albums) {
                add(new.albums & album.bit != 0 ? 1 : -1, to: Self.name(album))
            }
        }
        let (before, after) = (change.before?.keywords ?? [], change.after?.keywords ?? [])
        guard old.isVisible != new.isVisible || before != after else { return }
        if old.isVisible { count(keywords: before, by: -1) }
        if new.isVisible { count(keywords: after, by: 1) }
    }

    /// The values of an asset that the counters depend on, except for keywords.
    private struct Counted {
        var exists = false
        var isVisible = false
        var mediaType = MediaType.unknown
        var isFavorite = false
        var isHidden = false
        var isInTrash = false
        /// The bits of the smart albums whose fetch without options returns the asset.
        var albums = 0

        init(_ asset: Asset?) {
            guard let asset else { return }
            exists = true
            isVisible = asset.isVisible
            mediaType = asset.mediaType
            isFavorite = isVisible && asset.isFavorite
            isHidden = asset.isHidden
            isInTrash = asset.trashedDate != nil
            albums = CounterChanges.albumMask(of: asset)
        }
    }

    private mutating func add(_ new: Bool, _ old: Bool, to name: String) {
        if new != old { add(new ? 1 : -1, to: name) }
    }

    private mutating func count(keywords: [String], by step: Int) {
        for keyword in Set(keywords) { add(step, to: KeywordSearch.text(keyword).counter) }
        for keyword in Set(keywords.map(folded)) { add(step, to: KeywordSearch.folded(keyword).counter) }
    }

    mutating func add(_ step: Int, to name: String) { changes[name, default: 0] += step }

    mutating func add(_ others: CounterChanges) { changes.merge(others.changes, uniquingKeysWith: +) }

    /// Returns the names of the counters of the smart albums that contain an asset; each counts the result of a fetch
    /// without options.
    static func derivedNames(of asset: Asset) -> [String] {
        SmartAlbum.albums(inMask: albumMask(of: asset)).map(name)
    }

    private static func albumMask(of asset: Asset) -> Int {
        let (isVisible, isInHidden) = (asset.isVisible, asset.isShownToHiddenFetch)
        guard isVisible || isInHidden else { return 0 }
        let mask = SmartAlbum.mask(of: asset)
        let hidden = SmartAlbum.allHidden.bit
        return (isVisible ? mask & ~hidden : 0) | (isInHidden ? mask & hidden : 0)
    }

    static func name(_ album: SmartAlbum) -> String { names[album] ?? "" }

    private static let names = Dictionary(
        uniqueKeysWithValues: SmartAlbum.allCases.map { ($0, "smart.\($0.rawValue)") }
    )

    func save(_ database: SQLConnection) throws {
        for (name, change) in changes where change != 0 {
            try Self.add(change, to: name, database)
            // Without this there would be a counter for every keyword that was ever used. A missing counter means 0.
            if change < 0, KeywordSearch.isCounter(name) {
                try database.run("DELETE FROM counter WHERE name = ? AND value = 0", name)
            }
        }
    }

    static func add(_ change: Int, to name: String, _ database: SQLConnection) throws {
        var statement = try SQLStatement(addition, database)
        statement.bind(name)
        statement.bind(max(0, change))
        statement.bind(change)
        try statement.run()
    }

    private static let addition =
        "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = counter.value + ?"

    static func set(_ value: Int64, as name: String, _ database: SQLConnection) throws {
        try database.run(
            "INSERT INTO counter VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
            name,
            value
        )
    }

    static func value(of name: String, _ database: SQLConnection) throws -> Int {
        try database.first("SELECT value FROM counter WHERE name = ?", name) { $0.int(0) } ?? 0
    }
}
