/// The services, by the names of their executables.
public enum ServiceName: String, Sendable, CaseIterable {
    case catalog
    case thumbnailer
    case editor
    case changeBroker = "change-broker"
}

/// The version of all programs.
public enum ServiceVersion {
    /// As shown by `safelight --version` and in the start message of each log.
    public static let current = "0.1.0"
}
