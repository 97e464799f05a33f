public import JSONValue

/// The author of a change. Observers use it to recognize their own changes (D6).
public struct ChangeOrigin: Sendable, Hashable, JSONTabled {
    /// The identity of the connection: `uid:1000`, the name of a key, or `clock` for changes made by the passing of
    /// time.
    public var identity: String
    /// The name that the client gave itself.
    public var client: String?
    /// The transaction id that the client chose.
    public var transaction: String?
    /// The client on whose behalf a service acted.
    public var onBehalfOf: String?

    public init(identity: String, client: String? = nil, transaction: String? = nil, onBehalfOf: String? = nil) {
        self.identity = identity
        self.client = client
        self.transaction = transaction
        self.onBehalfOf = onBehalfOf
    }

    public static let table = JSONTable(
        "ChangeOrigin",
        "The author of a change.",
        unknown: .ignored,
        blank: ChangeOrigin(identity: ""),
        [
            .required("identity", \.identity, .text(maxBytes: 256), "Identity of the connection, or \"clock\"."),
            .optional("client", \.client, .text(maxBytes: 128), "The name the client gave itself."),
            .optional("transaction", \.transaction, .text(maxBytes: 128), "The client's name for the transaction."),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "The client on whose behalf a service acted."),
        ]
    )
}

/// One entity before and after a transaction: nil before is an insertion, nil after is a deletion.
public struct EntityChange<Entity: JSONTabled & Hashable>: Sendable, Hashable {
    /// The entity before the transaction; nil if it was created.
    public var before: Entity?
    /// The entity after the transaction; nil if it was deleted.
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
    /// True if the entity was deleted from the library: PhotoKit's `objectWasDeleted` (S-66). Removal from a collection
    /// is not a deletion.
    public var objectWasDeleted: Bool { after == nil }
}

extension EntityChange where Entity == Asset {
    public var id: ObjectID { (after ?? before)?.id ?? .none }
    /// True if the pixels changed: PhotoKit's `assetContentChanged` (S-66).
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

/// One transaction: every entity that it touched, before and after.
///
/// A record is complete: with a key list and the records, any fetch result can be updated forward and undone backward.
/// The bytes never change, and ``bytes`` of equal records are equal.
public struct ChangeRecord: Sendable, Hashable, JSONTabled {
    /// Increases by one with each transaction.
    public var sequence: Int64
    /// The id of the history to which the record belongs.
    public var library: String
    /// The time of the commit in microseconds since 1970. Informational: the order of records is that of `sequence`.
    public var date: Int64
    /// The author of the change.
    public var origin: ChangeOrigin
    /// The assets that were touched.
    public var assets: [EntityChange<Asset>] = []
    /// The collections that were touched.
    public var collections: [EntityChange<AssetCollection>] = []
    /// The lists that were touched.
    public var lists: [EntityChange<CollectionList>] = []
    /// The published edits whose state changed.
    public var edits: [PublishedEdit] = []

    /// The maximum number of entities that one transaction may touch.
    public static let maxEntities = 1000

    public init(sequence: Int64, library: String, date: Int64, origin: ChangeOrigin) {
        self.sequence = sequence
        self.library = library
        self.date = date
        self.origin = origin
    }

    /// The token of the state after this record.
    public var token: ChangeToken { ChangeToken(library: library, sequence: sequence) }

    /// The canonical JSON of the record.
    public var bytes: [UInt8] { json.bytes }

    /// The feed topics that carry this record, besides `changes`.
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
            .required("sequence", \.sequence, .integer(1...Int64.max), "Increases by one with each transaction."),
            .required("library", \.library, .text(maxBytes: 32), "The history it belongs to."),
            .required("date", \.date, .integer(), "When it was committed, microseconds since 1970."),
            .required("origin", \.origin, .object(ChangeOrigin.self), "The author of the change."),
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
                "Published edits whose state changed.",
                default: []
            ),
        ]
    )
}
