import JSONValue
import PhotoModel

/// Names and sizes of the messages that deliver an image.
public enum ImageDelivery {
    /// The notification with a degraded image; at least one more message follows.
    public static let degraded = "image.degraded"
    /// The notification with a part of an image that is too large for the response: `offset`, and the bytes as an
    /// attachment. Parts are sent in order.
    public static let chunk = "image.chunk"
    public static let chunkBytes = 1 << 20
    /// Images of at most this many bytes are attached to the response, in parts of at most 8 MiB to be joined in order.
    public static let inReply = 15 << 20
}
