import PhotoModel

/// Formats change records as text.
enum ChangeFormatter {
    /// Returns one line for each changed asset, album, folder and edit.
    static func lines(_ record: ChangeRecord) -> [String] {
        let titles = titles(of: record)
        let grants = record.grants.compactMap { $0.after ?? $0.before }.map { GrantText.line($0) }
        let questions = record.questions.map { "\(GrantText.line($0)) (\($0.state.rawValue))" }
        let objects: [String] =
            record.assets.map { "\(name($0)): \(describe($0, titles: titles))" }
            + record.collections.map { "\(name($0)): \(describe($0))" }
            + record.lists.map { "\(name($0)): \(describe($0))" }
            + record.edits.map { "edit \($0.id.printable) of \($0.asset): \(describe($0))" }
        return objects + grants + questions
    }

    /// Returns the heading of a change: date, sequence and origin.
    static func heading(_ record: ChangeRecord) -> String {
        let names = [record.origin.identity, record.origin.client].compactMap { $0 }.filter { !$0.isEmpty }
        let behalf = record.origin.onBehalfOf.map { " for \($0.printable)" } ?? ""
        let origin = names.map(\.printable).joined(separator: "/")
        return "\(QuantityFormatter.time(record.date))  #\(record.sequence)  \(origin)\(behalf)"
    }

    private static func name(_ change: EntityChange<AssetCollection>) -> String {
        let collection = change.after ?? change.before
        return "\(collection?.type == .moment ? "moment" : "album") \(title(collection))"
    }

    /// The years and months of moments are lists too.
    private static func name(_ change: EntityChange<CollectionList>) -> String {
        let list = change.after ?? change.before
        return "\(list?.type == .momentList ? "moments of" : "folder") \(list?.title?.printable ?? change.id.text)"
    }

    private static func name(_ change: EntityChange<Asset>) -> String {
        let name = (change.after ?? change.before)?.originalFilename
        return name.map { "\($0.printable) (\(change.id))" } ?? change.id.text
    }

    private static func titles(of record: ChangeRecord) -> [ObjectID: String] {
        Dictionary(record.collections.map { ($0.id, title($0.after ?? $0.before)) }) { first, _ in first }
    }

    private static func title(_ collection: AssetCollection?) -> String {
        collection?.title.map { "\"\($0.printable)\"" } ?? collection?.id.text ?? ""
    }

    static func describe(_ change: EntityChange<Asset>, titles: [ObjectID: String]) -> String {
        guard let after = change.after else { return "deleted" }
        guard let before = change.before else {
            return (["added"] + memberships(from: [], to: after.memberships, titles)).joined(separator: ", ")
        }
        var words: [String] = []
        func add(_ text: @autoclosure () -> String, if isChanged: Bool) { if isChanged { words.append(text()) } }
        if change.isContentChanged {
            switch (before.hasAdjustments, after.hasAdjustments) {
            case (true, false): words.append("reverted to the original")
            case (_, true): words.append("edited")
            default: words.append("content changed")
            }
            add(
                "now \(after.pixelWidth) x \(after.pixelHeight)",
                if: (before.pixelWidth, before.pixelHeight) != (after.pixelWidth, after.pixelHeight)
            )
        }
        add(after.isFavorite ? "favorite" : "no longer a favorite", if: before.isFavorite != after.isFavorite)
        add(after.isHidden ? "hidden" : "no longer hidden", if: before.isHidden != after.isHidden)
        add(
            after.creationDate.map { "date is \(QuantityFormatter.exactTime($0, offset: after.creationOffset))" }
                ?? "no date",
            if: before.creationDate != after.creationDate || before.creationOffset != after.creationOffset
        )
        add(
            after.location.map { "location is \(QuantityFormatter.location($0))" } ?? "no location",
            if: before.location != after.location
        )
        add(after.caption.map { "caption is \"\($0.printable)\"" } ?? "no caption", if: before.caption != after.caption)
        add("rating is \(after.rating)", if: before.rating != after.rating)
        add(
            "keywords are \(after.keywords.map(\.printable).joined(separator: ", "))",
            if: before.keywords != after.keywords
        )
        add(
            after.trashedDate == nil ? "restored from the trash" : "moved to the trash",
            if: before.trashedDate != after.trashedDate
        )
        words += memberships(from: before.memberships, to: after.memberships, titles)
        return words.isEmpty ? "changed" : words.joined(separator: ", ")
    }

    private static func memberships(
        from before: [Membership],
        to after: [Membership],
        _ titles: [ObjectID: String]
    ) -> [String] {
        let (old, new) = (Set(before.map(\.collection)), Set(after.map(\.collection)))
        func title(_ id: ObjectID) -> String { titles[id] ?? id.text }
        let added = new.subtracting(old).sorted().map { "added to \(title($0))" }
        let removed = old.subtracting(new).sorted().map { "removed from \(title($0))" }
        let isMoved = old == new && Set(before) != Set(after)
        return added + removed + (isMoved ? ["moved in an album"] : [])
    }

    static func describe(_ change: EntityChange<AssetCollection>) -> String {
        guard let after = change.after else { return "deleted" }
        guard let before = change.before else { return "created" }
        var words: [String] = []
        if before.title != after.title { words.append("renamed from \(title(before))") }
        if before.estimatedAssetCount != after.estimatedAssetCount, let count = after.estimatedAssetCount {
            words.append("now \(QuantityFormatter.count(count, "photo"))")
        }
        if before.keyAsset != after.keyAsset { words.append("new cover") }
        return words.isEmpty ? "changed" : words.joined(separator: ", ")
    }

    static func describe(_ change: EntityChange<CollectionList>) -> String {
        guard let after = change.after else { return "deleted" }
        guard let before = change.before else { return "created" }
        if before.title != after.title { return "renamed from \(before.title?.printable ?? "nothing")" }
        return before.childCount != after.childCount ? "now \(after.childCount) albums and folders" : "changed"
    }

    static func describe(_ edit: PublishedEdit) -> String {
        switch edit.state {
        case .accepted, .applied: edit.state.rawValue
        case .failed: "failed: \((edit.errorMessage ?? "").printable) (\((edit.errorName ?? "error").printable))"
        }
    }
}
