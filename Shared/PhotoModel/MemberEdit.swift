import JSONValue

/// One step on the members of an album or the children of a folder (spec T-14 to T-16, T-25, section 10).
///
/// Steps of one request are carried out in their order; each sees the list that the one before left. Their indexes are
/// those of the list as the client saw it at the request's snapshot, and the result is carried over to the list as it is
/// now: what was moved or put in stands behind the same neighbour as in the client's list, what others did stays done.
public enum MemberEdit: Sendable, Hashable {
    /// Appends; what is in already stays where it is.
    case add([ObjectReference])
    /// Takes out; what is not in is passed over.
    case remove([ObjectID])
    /// Puts in, each at the index it then has; one ascending index for each. What is in already moves.
    case insert([ObjectReference], at: [Int])
    /// Takes out all of `from`, then puts them in together at an index of what is left.
    case move(from: [Int], to: Int)
    /// Puts others in the place of some. What is in already moves.
    case replace(at: [Int], with: [ObjectReference])
    case removeAt([Int])

    /// Whether it names members by their index.
    public var hasIndexes: Bool {
        switch self {
        case .add, .remove: false
        case .insert, .move, .replace, .removeAt: true
        }
    }
}

/// A ``MemberEdit`` as it stands on the wire.
struct MemberEditForm: Sendable, JSONTabled {
    enum Operation: String, Sendable, CaseIterable { case add, remove, insert, move, replace, removeAt }

    var operation = Operation.add
    var members: [ObjectReference]?
    var at: [Int]?
    var to: Int?

    private static let indexes = JSONType<[Int]>.list(of: .count(0...Int(Int32.max)), limit: ChangeRecord.maxEntities)

    static let table = JSONTable(
        "MemberEdit",
        "One step on the members: add, remove, insert (members, at), move (at, to), replace (at, members), removeAt (at).",
        unknown: .refused,
        blank: MemberEditForm(),
        [
            .required("op", \.operation, .name(Operation.self), "What is done."),
            .optional(
                "members",
                \.members,
                .list(of: .reference, limit: ChangeRecord.maxEntities),
                "Who; for add, remove, insert and replace."
            ),
            .optional("at", \.at, indexes, "Indexes; for insert, move, replace and removeAt."),
            .optional("to", \.to, .count(0...Int(Int32.max)), "For move: an index of what is left."),
        ]
    )
}

extension MemberEditForm {
    init(_ edit: MemberEdit) {
        switch edit {
        case .add(let members): (operation, self.members) = (.add, members)
        case .remove(let ids): (operation, members) = (.remove, ids.map { .id($0) })
        case .insert(let members, let at): (operation, self.members, self.at) = (.insert, members, at)
        case .move(let from, let to): (operation, at, self.to) = (.move, from, to)
        case .replace(let at, let members): (operation, self.at, self.members) = (.replace, at, members)
        case .removeAt(let at): (operation, self.at) = (.removeAt, at)
        }
    }

    func edit() throws(JSONProblem) -> MemberEdit {
        switch (operation, members, at, to) {
        case (.add, let members?, nil, nil): return .add(members)
        case (.insert, let members?, let at?, nil):
            try Self.checkAscending(at)
            guard members.count == at.count else {
                throw JSONProblem("insert has \(members.count) members and \(at.count) indexes; give one for each")
            }
            return .insert(members, at: at)
        case (.move, nil, let at?, let to?):
            try Self.checkAscending(at)
            return .move(from: at, to: to)
        case (.replace, let members?, let at?, nil):
            try Self.checkAscending(at)
            guard members.count == at.count else {
                throw JSONProblem("replace has \(members.count) members and \(at.count) indexes; give one for each")
            }
            return .replace(at: at, with: members)
        case (.removeAt, nil, let at?, nil):
            try Self.checkAscending(at)
            return .removeAt(at)
        case (.remove, let members?, nil, nil):
            var ids: [ObjectID] = []
            for member in members {
                guard case .id(let id) = member else { throw JSONProblem("remove takes identifiers") }
                ids.append(id)
            }
            return .remove(ids)
        default:
            throw JSONProblem(
                "\(operation.rawValue) takes "
                    + [
                        Operation.add: "members", .remove: "members", .insert: "members and at", .move: "at and to",
                        .replace: "at and members", .removeAt: "at",
                    ][operation, default: ""] + " and nothing else"
            )
        }
    }

    private static func checkAscending(_ indexes: [Int]) throws(JSONProblem) {
        guard zip(indexes, indexes.dropFirst()).allSatisfy({ $0 < $1 }) else {
            throw JSONProblem("indexes stand in ascending order, each once", path: ["at"])
        }
    }
}

extension JSONType where Value == MemberEdit {
    static var memberEdit: JSONType {
        let form = JSONType<MemberEditForm>.object(MemberEditForm.self)
        return JSONType(
            schema: form.schema(),
            decode: { (json: JSON) throws(JSONProblem) in try MemberEditForm(json: json).edit() },
            encode: { MemberEditForm($0).json }
        )
    }
}
