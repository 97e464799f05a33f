public import Messaging

/// Where the services of a house listen.
public struct ServiceEndpoints: Sendable, Hashable {
    /// Entities, fetches, changes, resources.
    public var catalog: EndpointAddress
    /// Images at a size.
    public var thumbnailer: EndpointAddress
    /// Adjustments and renders.
    public var editor: EndpointAddress
    /// Requests to the change-broker.
    public var changeBroker: EndpointAddress
    /// The change-broker's live messages.
    public var feed: EndpointAddress
    /// Where edits are published to.
    public var edits: EndpointAddress
    /// What protects connections to addresses over TCP.
    public var security: SocketSecurity

    public init(
        catalog: EndpointAddress,
        thumbnailer: EndpointAddress,
        editor: EndpointAddress,
        changeBroker: EndpointAddress,
        feed: EndpointAddress,
        edits: EndpointAddress,
        security: SocketSecurity = .none
    ) {
        self.catalog = catalog
        self.thumbnailer = thumbnailer
        self.editor = editor
        self.changeBroker = changeBroker
        self.feed = feed
        self.edits = edits
        self.security = security
    }

    /// What protects a connection to one of them: on this machine the folder of the sockets does.
    public func security(for address: EndpointAddress) -> SocketSecurity {
        address.transport == .tcp ? security : .none
    }
}
