import JSONValue

/// The priority of an edit among those waiting to be rendered.
public enum EditPriority: String, Sendable, CaseIterable {
    case high, normal, low
}
