import JSONValue

/// One operation on the members of an album or the children of a folder (T-14 to T-16, T-25).
///
/// The operations of a request are applied in order, each to the result of the previous one. Indexes refer to the list
/// at the request's snapshot. The result is then merged into the current list: a moved or inserted member follows the
/// same neighbour as in the client's list, and changes made by others are kept.
public enum MemberEdit: Sendable, Hashable {
    /// Appends members. Existing members keep their position.
    case add([ObjectReference])
    /// Removes members. Identifiers of other objects are ignored.
    case remove([ObjectID])
    /// Inserts members, each at its own index; the indexes are those in the resulting list, ascending. Existing members
    /// are moved.
    case insert([ObjectReference], at: [Int])
    /// Removes all of `from`, then inserts them together at an index of the remaining list.
    case move(from: [Int], to: Int)
    /// Replaces members by others. Existing members are moved.
    case replace(at: [Int], with: [ObjectReference])
    case removeAt([Int])

    /// True if the operation refers to members by index.
    public var hasIndexes: Bool {
        switch self {
        case .add, .remove: false
        case .insert, .move, .replace, .removeAt: true
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
