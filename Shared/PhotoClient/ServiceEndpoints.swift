public import Messaging

/// The addresses of a library's services.
public struct ServiceEndpoints: Sendable, Hashable {
    /// The addresses for requests to the catalogs of the library, at least one.
    public var catalogs: [EndpointAddress]
    /// The addresses for requests to the instances of the thumbnailer, at least one.
    public var thumbnailers: [EndpointAddress]
    /// The addresses for requests to the instances of the editor, at least one.
    public var editors: [EndpointAddress]
    /// The address for requests to the change-broker.
    public var changeBroker: EndpointAddress
    /// The address of the change-broker's live feed.
    public var feed: EndpointAddress
    /// The addresses for published edits, one for each instance of the editor.
    public var edits: [EndpointAddress]
    /// The security of connections over TCP.
    public var security: SocketSecurity

    /// Creates the addresses of services with one instance each.
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

    /// The address for requests to the catalog; of several catalogs, that of the first one.
    public var catalog: EndpointAddress { catalogs[0] }

    /// Returns the security of a connection to one of the addresses: none for `ipc://`, which is protected by the
    /// permissions of the socket folder.
    public func security(for address: EndpointAddress) -> SocketSecurity {
        address.transport == .tcp ? security : .none
    }
}
