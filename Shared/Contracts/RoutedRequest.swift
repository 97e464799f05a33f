public import PhotoModel

/// A request about an asset to a service of which several instances may run.
///
/// Clients choose the instance by the asset, so that its cache has the asset's images.
public protocol RoutedRequest: Request {
    /// The asset by which the instance is chosen; nil if any instance can be chosen.
    var routingAsset: ObjectID? { get }
    /// True if the request may be sent to another instance when its connection was lost: the second
    /// execution has no effect.
    static var isRepeatable: Bool { get }
}

extension RoutedRequest {
    public static var isRepeatable: Bool { true }
}

// MARK: Thumbnailer

extension ImageRequest: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension ImageData: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension ImageFrames: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension ImageSheet: RoutedRequest { public var routingAsset: ObjectID? { assets.first } }
extension LivePhotoRequest: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension VideoPlayback: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension VideoAsset: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension ReadVideo: RoutedRequest { public var routingAsset: ObjectID? { asset } }

extension ExportVideo: RoutedRequest {
    public var routingAsset: ObjectID? { asset }
    /// The export belongs to the instance that makes it.
    public static var isRepeatable: Bool { false }
}

// MARK: Editor

extension PreviewEdit: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension CompareEdit: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension SuggestEdit: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension EditHistory: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension DescribeEdit: RoutedRequest { public var routingAsset: ObjectID? { asset } }
extension BeginEditing: RoutedRequest { public var routingAsset: ObjectID? { asset } }

// The following requests commit changes. Their sender decides whether to repeat one, with the same transaction.

extension ApplyEdit: RoutedRequest {
    public var routingAsset: ObjectID? { asset }
    public static var isRepeatable: Bool { false }
}

extension ApplyEdits: RoutedRequest {
    public var routingAsset: ObjectID? { asset ?? assets.first }
    public static var isRepeatable: Bool { false }
}

extension CopyEdits: RoutedRequest {
    public var routingAsset: ObjectID? { to.first }
    public static var isRepeatable: Bool { false }
}

extension EditLivePhoto: RoutedRequest {
    public var routingAsset: ObjectID? { asset }
    public static var isRepeatable: Bool { false }
}

extension RevertEdit: RoutedRequest {
    public var routingAsset: ObjectID? { asset }
    public static var isRepeatable: Bool { false }
}

extension UndoEdits: RoutedRequest {
    public var routingAsset: ObjectID? { asset }
    public static var isRepeatable: Bool { false }
}
