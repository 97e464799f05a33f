public import Messaging

/// The addresses of a library's services.
public struct ServiceEndpoints: Sendable, Hashable {
    /// Requests to the catalog; one address for each of several catalogs of the library, at least one.
    public var catalogs: [EndpointAddress]
    /// Requests to the thumbnailer; one address for each instance, at least one.
    public var thumbnailers: [EndpointAddress]
    /// Requests to the editor; one address for each instance, at least one.
    public var editors: [EndpointAddress]
    /// Requests to the change-broker.
    public var changeBroker: EndpointAddress
    /// The change-broker's live feed.
    public var feed: EndpointAddress
    /// The editor's endpoint for published edits; one address for each instance, at least one.
    public var edits: [EndpointAddress]
    /// Security of connections over TCP.
    public var security: SocketSecurity

    /// Creates addresses of services of which one instance runs each.
    public init(
        catalog: EndpointAddress,
        thumbnailer: EndpointAddress,
        editor: EndpointAddress,
        changeBroker: EndpointAddress,
        feed: EndpointAddress,
        edits: EndpointAddress,
        security: SocketSecurity = .none
    ) {
        self.catalogs = [catalog]
        self.thumbnailers = [thumbnailer]
        self.editors = [editor]
        self.changeBroker = changeBroker
        self.feed = feed
        self.edits = [edits]
        self.security = security
    }

    /// Requests to the catalog; of several catalogs, to the first one.
    public var catalog: EndpointAddress { catalogs[0] }

    /// Returns the security of a connection to one of the addresses: none for `ipc://`, which is protected by the
    /// permissions of the socket folder.
    public func security(for address: EndpointAddress) -> SocketSecurity {
        address.transport == .tcp ? security : .none
    }
}
