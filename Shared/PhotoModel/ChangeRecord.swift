public import JSONValue

/// Who made a change: what an observer needs to know its own (spec D6).
public struct ChangeOrigin: Sendable, Hashable, JSONTabled {
    /// The identity of the connection: `uid:1000`, a key's name, or `clock` for what the passing of time changes.
    public var identity: String
    /// The name the client gave itself.
    public var client: String?
    /// The client's own name for the transaction.
    public var transaction: String?
    /// The client a service acted for.
    public var onBehalfOf: String?

    public init(identity: String, client: String? = nil, transaction: String? = nil, onBehalfOf: String? = nil) {
        self.identity = identity
        self.client = client
        self.transaction = transaction
        self.onBehalfOf = onBehalfOf
    }

    public static let table = JSONTable(
        "ChangeOrigin",
        "Who made a change.",
        unknown: .ignored,
        blank: ChangeOrigin(identity: ""),
        [
            .required("identity", \.identity, .text(maxBytes: 256), "Identity of the connection, or \"clock\"."),
            .optional("client", \.client, .text(maxBytes: 128), "The name the client gave itself."),
            .optional("transaction", \.transaction, .text(maxBytes: 128), "The client's name for the transaction."),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "The client a service acted for."),
        ]
    )
}

/// One entity before and after a transaction; nil before is an insertion, nil after a deletion.
public struct EntityChange<Entity: JSONTabled & Hashable>: Sendable, Hashable {
    public var before: Entity?
    public var after: Entity?

    public init(before: Entity?, after: Entity?) {
        self.before = before
        self.after = after
    }

    static var type: JSONType<EntityChange> {
        JSONType(
            schema: [
                "type": "object",
                "properties": ["before": Entity.table.schema, "after": Entity.table.schema],
            ],
            decode: { (json: JSON) throws(JSONProblem) in
                guard case .object(let object) = json else { throw JSONProblem("expected an object") }
                var change = EntityChange(before: nil, after: nil)
                if let before = object["before"], !before.isNull { change.before = try Entity(json: before) }
                if let after = object["after"], !after.isNull { change.after = try Entity(json: after) }
                guard change.before != nil || change.after != nil else { throw JSONProblem("neither before nor after") }
                return change
            },
            encode: { ["before": $0.before?.json ?? .null, "after": $0.after?.json ?? .null] }
        )
    }
}

extension EntityChange {
    /// The entity is gone from the library: PhotoKit's `objectWasDeleted` (spec S-66). Leaving a collection is not this.
    public var objectWasDeleted: Bool { after == nil }
}

extension EntityChange where Entity == Asset {
    public var id: ObjectID { (after ?? before)?.id ?? .none }
    /// The pixels changed: PhotoKit's `assetContentChanged` (spec S-66).
    public var isContentChanged: Bool {
        guard let before, let after else { return false }
        return before.contentRevision != after.contentRevision
    }
}

extension EntityChange where Entity == AssetCollection {
    public var id: ObjectID { (after ?? before)?.id ?? .none }
}

extension EntityChange where Entity == CollectionList {
    public var id: ObjectID { (after ?? before)?.id ?? .root }
}

/// One transaction: everything it touched, before and after (DESIGN 3.2).
///
/// Complete: whoever holds a list of keys and the records can carry any fetch forward and undo it backward. The bytes
/// are final; ``bytes`` of equal records are equal.
public struct ChangeRecord: Sendable, Hashable, JSONTabled {
    /// Grows by one with each transaction.
    public var sequence: Int64
    /// The history it belongs to.
    public var library: String
    /// When it was committed, microseconds since 1970. Data only: order is the sequence's.
    public var date: Int64
    public var origin: ChangeOrigin
    public var assets: [EntityChange<Asset>] = []
    public var collections: [EntityChange<AssetCollection>] = []
    public var lists: [EntityChange<CollectionList>] = []
    public var edits: [PublishedEdit] = []

    /// The most entities one transaction may touch.
    public static let maxEntities = 1000

    public init(sequence: Int64, library: String, date: Int64, origin: ChangeOrigin) {
        self.sequence = sequence
        self.library = library
        self.date = date
        self.origin = origin
    }

    public var token: ChangeToken { ChangeToken(library: library, sequence: sequence) }

    public var bytes: [UInt8] { json.bytes }

    /// The topics of the feed that carry this record, besides `changes` (DESIGN 3.3).
    public var topics: [String] {
        assets.map { "asset.\($0.id)" } + collections.map { "collection.\($0.id)" } + lists.map { "list.\($0.id)" }
            + edits.map { "edit.\($0.id)" }
    }

    public static let table = JSONTable(
        "ChangeRecord",
        "One transaction: everything it touched, before and after.",
        unknown: .ignored,
        blank: ChangeRecord(sequence: 0, library: "", date: 0, origin: ChangeOrigin(identity: "")),
        [
            .required("sequence", \.sequence, .integer(1...Int64.max), "Grows by one with each transaction."),
            .required("library", \.library, .text(maxBytes: 32), "The history it belongs to."),
            .required("date", \.date, .integer(), "When it was committed, microseconds since 1970."),
            .required("origin", \.origin, .object(ChangeOrigin.self), "Who made it."),
            .defaulted(
                "assets",
                \.assets,
                .list(of: EntityChange.type, limit: 100_000),
                "Assets touched.",
                default: []
            ),
            .defaulted(
                "collections",
                \.collections,
                .list(of: EntityChange.type, limit: 100_000),
                "Collections touched.",
                default: []
            ),
            .defaulted("lists", \.lists, .list(of: EntityChange.type, limit: 100_000), "Lists touched.", default: []),
            .defaulted(
                "edits",
                \.edits,
                .list(of: .object(PublishedEdit.self), limit: 100_000),
                "Published edits that changed state.",
                default: []
            ),
        ]
    )
}
