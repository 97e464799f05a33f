import JSONValue

/// The priority of an edit among those of its client that wait to be rendered; an edit of low priority waits for the
/// other edits of all clients.
public enum EditPriority: String, Sendable, CaseIterable {
    case high, normal, low
}
