/// The endpoints of the services; each has a flag, an environment variable, a default file in the run folder and a TCP
/// port.
public enum EndpointName: String, Sendable, CaseIterable {
    case catalog, thumbnailer, editor, broker, feed, edits

    /// The name of the flag, without dashes.
    public var flag: String { rawValue }

    /// The environment variable, for example `SAFELIGHT_CATALOG`.
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

    /// The default TCP port, 5571...5576.
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

    /// The service that binds the endpoint.
    public var service: ServiceName {
        switch self {
        case .catalog: .catalog
        case .thumbnailer: .thumbnailer
        case .editor, .edits: .editor
        case .broker, .feed: .changeBroker
        }
    }

    /// True if clients may have a list of addresses: several instances of the service can work for one library.
    public var mayHaveInstances: Bool { service != .changeBroker }
}
