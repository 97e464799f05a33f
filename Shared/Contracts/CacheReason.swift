import JSONValue

/// The source of an image, or the reason it was not cached (P-11).
public enum CacheReason: String, Sendable, Hashable, CaseIterable {
    /// Cached in memory.
    case memory
    /// Cached because the caching manager named in the request had prepared exactly this image.
    case prepared
    /// Cached on disk.
    case disk
    /// Not cached; shared with another request for the same image that was in progress.
    case shared
    /// Not cached; rendered for this request.
    case rendered
    /// Not cached: the caching manager prepares this asset with other options or at another size.
    case optionsDiffer
    /// Not cached: the caching manager has the image on its list but has not prepared it yet.
    case notPreparedYet
    /// A smaller cached image.
    case smaller
    /// The preview that is embedded in the file.
    case preview
    /// Decoded at a fraction of its size, which is faster.
    case quick
}
