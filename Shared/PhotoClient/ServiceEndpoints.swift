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

    public init(
        catalog: EndpointAddress,
        thumbnailer: EndpointAddress,
        editor: EndpointAddress,
        changeBroker: EndpointAddress,
        feed: EndpointAddress,
        edits: EndpointAddress
    ) {
        self.catalog = catalog
        self.thumbnailer = thumbnailer
        self.editor = editor
        self.changeBroker = changeBroker
        self.feed = feed
        self.edits = edits
    }
}
