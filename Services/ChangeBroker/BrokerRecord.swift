import Contracts
import JSONValue
import PhotoModel

/// A change record on its way through the broker: what has to be known of it, and the rest as it came.
///
/// The broker passes records on without reading them whole, so that one of a newer catalog keeps what this broker does
/// not know.
struct BrokerRecord: Sendable {
    /// One entity's part of the record, under the topic that carries it.
    struct Part: Sendable {
        let topic: String
        let id: String
        let change: JSON

        /// What PhotoKit tells of a changed object besides (spec S-66), and the names of the members that changed; nothing
        /// for an edit, which is no object.
        var details: JSONObject {
            guard change["before"] != nil || change["after"] != nil else { return [:] }
            let (before, after) = (change["before"]?.objectValue, change["after"]?.objectValue)
            var details: JSONObject = ["assetContentChanged": false, "objectWasDeleted": .bool(after == nil)]
            guard let before, let after else { return details }
            details["assetContentChanged"] = .bool(before["contentRevision"] != after["contentRevision"])
            let names = before.members.map(\.name) + after.members.map(\.name).filter { before[$0] == nil }
            let changed = names.filter { !Self.revisions.contains($0) && before[$0] != after[$0] }
            details["changedProperties"] = JSON(changed.sorted())
            return details
        }

        /// They change with every other member, and say nothing of their own.
        private static let revisions: Set<String> = ["revision", "contentRevision"]
    }

    let sequence: Int64
    let library: String
    let json: JSON
    /// The record's one encoding, made once.
    let bytes: [UInt8]

    private static let families = [
        (member: "assets", topic: "asset."), (member: "collections", topic: "collection."),
        (member: "lists", topic: "list."), (member: "edits", topic: "edit."),
    ]

    /// - Throws: what makes it no change record
    init(_ json: JSON) throws(JSONProblem) {
        guard let sequence = json["sequence"]?.intValue, sequence > 0 else { throw JSONProblem("has no sequence") }
        guard let library = json["library"]?.stringValue, library.utf8.count <= 32 else {
            throw JSONProblem("has no library")
        }
        guard json["date"]?.intValue != nil, json["origin"]?.objectValue != nil else {
            throw JSONProblem("has no date or no origin")
        }
        self.sequence = sequence
        self.library = library
        self.json = json
        self.bytes = json.bytes
        for (member, _) in Self.families {
            guard let changes = json[member] else { continue }
            guard let list = changes.arrayValue, list.allSatisfy({ Self.id(of: $0) != nil }) else {
                throw JSONProblem("has an entity without an identifier", path: [member])
            }
        }
    }

    var token: ChangeToken { ChangeToken(library: library, sequence: sequence) }

    /// The entities it touches.
    var parts: [Part] {
        Self.families.flatMap { member, topic in
            (json[member]?.arrayValue ?? []).compactMap { change in
                Self.id(of: change).map { Part(topic: topic + $0, id: $0, change: change) }
            }
        }
    }

    /// The identifiers it touches, under the names of the record's members.
    var identifiers: [(member: String, ids: [String])] {
        Self.families.compactMap { member, _ in
            json[member]?.arrayValue.map { (member, $0.compactMap(Self.id(of:))) }
        }
    }

    /// An edit has its id itself, an entity in the state before or after.
    private static func id(of change: JSON) -> String? {
        (change["id"] ?? change["after"]?["id"] ?? change["before"]?["id"])?.stringValue
    }
}
