public import JSONValue

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
    /// The grants that were requested or decided.
    public var grants: [EntityChange<Grant>] = []
    /// The questions about consent that were asked or decided.
    public var questions: [ConsentQuestion] = []

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

    /// The prefixes of the feed's topics; the identifier of an object follows.
    public enum TopicPrefix {
        public static let asset = "asset."
        public static let collection = "collection."
        public static let list = "list."
        public static let edit = "edit."
    }

    /// Returns the feed topic of the changes of an object.
    public static func topic(of id: ObjectID) -> String {
        switch id.kind {
        case .asset: TopicPrefix.asset + id.text
        case .assetCollection: TopicPrefix.collection + id.text
        case .collectionList: TopicPrefix.list + id.text
        }
    }

    /// The feed topics that carry this record, besides `changes`.
    public var topics: [String] {
        assets.indices.map { Self.topic(of: assets[$0].id) } + collections.map { Self.topic(of: $0.id) }
            + lists.map { Self.topic(of: $0.id) } + edits.map { TopicPrefix.edit + $0.id }
            + (grants.isEmpty && questions.isEmpty ? [] : [Grant.topic])
    }

    public static let table = JSONTable(
        "ChangeRecord",
        "One transaction: everything it touched, before and after.",
        unknown: .ignored,
        blank: ChangeRecord(sequence: 0, library: "", date: 0, origin: ChangeOrigin(identity: "")),
        [
            .required("sequence", \.sequence, .integer(1...Int64.max), "Increases by one with each transaction."),
            .required("library", \.library, .text(maxBytes: 32), "The history it belongs to."),
            .required("date", \.date, .date(), "When it was committed, microseconds since 1970."),
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
            .defaulted(
                "grants",
                \.grants,
                .list(of: EntityChange.type, limit: 100_000),
                "Grants that were asked for or decided.",
                default: []
            ),
            .defaulted(
                "questions",
                \.questions,
                .list(of: .object(ConsentQuestion.self), limit: 100_000),
                "Questions about consent that were asked or decided.",
                default: []
            ),
        ]
    )
}

// MARK: - JSON text

// The JSON text of a record, written member by member. A test compares it with that of ``ChangeRecord/table``.

extension ChangeRecord {
    /// The canonical JSON of the record.
    public var bytes: [UInt8] { bytes(limit: .max) }

    /// Returns the canonical JSON of the record. If that exceeds a limit, returns only a part that exceeds it too: one
    /// entity may have megabytes, and a record up to a thousand entities.
    public func bytes(limit: Int) -> [UInt8] {
        // An asset with one file takes about a kibibyte.
        let capacity = 512 + assets.count * 2304 + (collections.count + lists.count) * 1024
        return JSONWriter.bytes(capacity: capacity) { write(to: &$0, limit: limit) }
    }

    private func write(to writer: inout JSONWriter, limit: Int) {
        writer.writeObject { writer in
            writer.append(",\"sequence\":")
            writer.write(sequence)
            writer.append(",\"library\":")
            writer.write(library)
            writer.append(",\"date\":")
            writer.write(date)
            writer.append(",\"origin\":")
            origin.write(to: &writer)
            if !assets.isEmpty {
                writer.append(",\"assets\":")
                writer.writeList(count: assets.count) { if $0.count <= limit { assets[$1].write(to: &$0) } }
            }
            write(collections, ",\"collections\":", to: &writer, limit: limit) { $0.write($1.json) }
            write(lists, ",\"lists\":", to: &writer, limit: limit) { $0.write($1.json) }
            if !edits.isEmpty {
                writer.append(",\"edits\":")
                writer.writeList(edits) { $0.write($1.json) }
            }
            write(grants, ",\"grants\":", to: &writer, limit: limit) { $0.write($1.json) }
            guard !questions.isEmpty else { return }
            writer.append(",\"questions\":")
            writer.writeList(questions) { $0.write($1.json) }
        }
    }

    private func write<Entity>(
        _ changes: [EntityChange<Entity>],
        _ name: StaticString,
        to writer: inout JSONWriter,
        limit: Int,
        _ write: (inout JSONWriter, Entity) -> Void
    ) {
        guard !changes.isEmpty else { return }
        writer.append(name)
        writer.writeList(changes) { writer, change in
            guard writer.count <= limit else { return }
            writer.append("{\"before\":")
            if let before = change.before { write(&writer, before) } else { writer.append("null") }
            writer.append(",\"after\":")
            if let after = change.after { write(&writer, after) } else { writer.append("null") }
            writer.append("}")
        }
    }
}

extension ChangeOrigin {
    fileprivate func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.append(",\"identity\":")
            writer.write(identity)
            if let client {
                writer.append(",\"client\":")
                writer.write(client)
            }
            if let transaction {
                writer.append(",\"transaction\":")
                writer.write(transaction)
            }
            guard let onBehalfOf else { return }
            writer.append(",\"onBehalfOf\":")
            writer.write(onBehalfOf)
        }
    }
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

    /// The JSON Schema of a change.
    public static var schema: JSON {
        let state: JSON = ["anyOf": [Entity.table.schema, ["type": "null"]]]
        return ["type": "object", "properties": ["before": state, "after": state], "required": ["before", "after"]]
    }

    static var type: JSONType<EntityChange> {
        JSONType(
            schema: schema,
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

// An asset has many members, and assigning a change or its asset to a variable copies all of them. Code that runs for
// every change therefore reads only the members that it needs from the element of a list:
// `changes[index].after?.isFavorite`.
extension EntityChange where Entity == Asset {
    public var id: ObjectID { after?.id ?? before?.id ?? .none }
    /// True if the asset was created.
    public var isInsertion: Bool { before?.id == nil }
    /// True if the pixels changed: PhotoKit's `assetContentChanged` (S-66).
    public var isContentChanged: Bool {
        guard let before, let after else { return false }
        return before.contentRevision != after.contentRevision
    }
}

extension EntityChange where Entity == AssetCollection {
    public var id: ObjectID { after?.id ?? before?.id ?? .none }
}

extension EntityChange where Entity == CollectionList {
    public var id: ObjectID { after?.id ?? before?.id ?? .root }
}

/// The author of a change. Observers use it to recognize their own changes (D6).
public struct ChangeOrigin: Sendable, Hashable, JSONTabled {
    /// The identity of the connection: `uid:1000`, the name of a key, or `clock` for changes that are due at a time,
    /// such as the emptying of the trash.
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
