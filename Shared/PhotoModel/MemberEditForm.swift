import JSONValue

/// A ``MemberEdit`` in wire form.
struct MemberEditForm: Sendable, JSONTabled {
    enum Operation: String, Sendable, CaseIterable { case add, remove, insert, move, replace, removeAt }

    var operation = Operation.add
    var members: [ObjectReference]?
    var at: [Int]?
    var to: Int?

    private static let indexes = JSONType<[Int]>.list(of: .count(0...Int(Int32.max)), limit: ChangeRecord.maxEntities)

    static let table = JSONTable(
        "MemberEdit",
        "Edits members: add, remove, insert (members, at), move (at, to), replace (at, members), removeAt (at).",
        unknown: .refused,
        blank: MemberEditForm(),
        [
            .required("op", \.operation, .name(Operation.self), "The operation."),
            .optional(
                "members",
                \.members,
                .list(of: .reference, limit: ChangeRecord.maxEntities),
                "The members; for add, remove, insert and replace."
            ),
            .optional("at", \.at, indexes, "Indexes; for insert, move, replace and removeAt."),
            .optional("to", \.to, .count(0...Int(Int32.max)), "For move: an index in the remaining list."),
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
            throw JSONProblem("indexes must be in ascending order without repetitions", path: ["at"])
        }
    }
}
