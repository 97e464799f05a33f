import JSONValue

/// The priority of an edit among those of its client that wait to be rendered; low ones come after those of all
/// clients.
public enum EditPriority: String, Sendable, CaseIterable {
    case high, normal, low
}
