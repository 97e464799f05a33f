import JSONValue

/// The code that renders the pixels of an adjustment list.
public enum RenderEngine: String, Sendable, Hashable, CaseIterable {
    /// The editor's own pass: all colour operations in one pass over the pixels.
    case fused
    /// ImageMagick's functions, one call after another.
    case imagemagick
}
