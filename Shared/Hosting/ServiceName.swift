/// The programs of the house that serve, by the names people type.
public enum ServiceName: String, Sendable, CaseIterable {
    case catalog
    case thumbnailer
    case editor
    case changeBroker = "change-broker"
}

/// The version of all programs of the house.
public enum ServiceVersion {
    /// As in `safelight --version` and the first line of each log.
    public static let current = "0.1.0"
}

/// The endpoints of a house; each has a flag, a variable, a default file in the run folder and a TCP port.
public enum EndpointName: String, Sendable, CaseIterable {
    case catalog, thumbnailer, editor, broker, feed, edits

    /// The flag, without its dashes.
    public var flag: String { rawValue }

    /// The variable, as in `SAFELIGHT_CATALOG`.
    public var variable: String { "SAFELIGHT_\(rawValue.uppercased())" }

    /// The socket file in the run folder.
    public var file: String {
        switch self {
        case .catalog: "catalog.sock"
        case .thumbnailer: "thumbnailer.sock"
        case .editor: "editor.sock"
        case .broker: "change-broker.sock"
        case .feed: "feed.sock"
        case .edits: "edits.sock"
        }
    }

    /// The port where the house serves over TCP, 5571...5576.
    public var port: Int {
        switch self {
        case .catalog: 5571
        case .thumbnailer: 5572
        case .editor: 5573
        case .broker: 5574
        case .feed: 5575
        case .edits: 5576
        }
    }

    /// Who binds it.
    public var service: ServiceName {
        switch self {
        case .catalog: .catalog
        case .thumbnailer: .thumbnailer
        case .editor, .edits: .editor
        case .broker, .feed: .changeBroker
        }
    }
}
