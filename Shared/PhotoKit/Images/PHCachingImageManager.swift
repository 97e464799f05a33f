public import Foundation
import Basics
import Contracts
import Dispatch
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// Prepares images before they are requested: `PHCachingImageManager` (S-53 to S-58).
///
/// Each instance has its own list of images. A request finds an image only if all of its values are those of the caching
/// request, also its options. Preparing never fails: what is not prepared is rendered when it is requested.
public final class PHCachingImageManager: PHImageManager, @unchecked Sendable {
    private struct State {
        var allowsHighQuality = true
        /// The cache at the thumbnailer; nil before it is used, and after the thumbnailer has forgotten it.
        var cache: String?
        var connection: LibraryConnection?
        /// The work that is sent, in order.
        var last: Task<Void, Never>?
    }

    private let state = Mutex(State())

    override public init() { super.init() }

    deinit {
        let (cache, connection, last) = state.withLock { ($0.cache, $0.connection, $0.last) }
        guard let cache, let connection else { return }
        connection.start {
            await last?.value
            _ = try? await connection.ask(CloseCache(cache: cache), of: connection.client.thumbnailer)
        }
    }

    /// If false, images are prepared only from what is read fast: previews, and decoding at a fraction of the size.
    public var allowsCachingHighQualityImages: Bool {
        get { state.withLock { $0.allowsHighQuality } }
        set {
            let connection = state.withLock { state in
                state.allowsHighQuality = newValue
                return state.connection
            }
            guard let connection else { return }
            send(connection) { ConfigureCache(cache: $0, allowsHighQuality: newValue) }
        }
    }

    /// Prepares images of assets, the most urgent first. Returns at once.
    public func startCachingImages(
        for assets: [PHAsset],
        targetSize: CGSize,
        contentMode: PHImageContentMode,
        options: PHImageRequestOptions?
    ) {
        each(assets, targetSize, contentMode, options) { StartCaching(cache: $0, images: $1) }
    }

    /// Takes images off the list. All values must be those with which they were put on it.
    public func stopCachingImages(
        for assets: [PHAsset],
        targetSize: CGSize,
        contentMode: PHImageContentMode,
        options: PHImageRequestOptions?
    ) {
        each(assets, targetSize, contentMode, options) { StopCaching(cache: $0, images: $1) }
    }

    /// Empties the list and ends all preparation.
    public func stopCachingImagesForAllAssets() {
        guard let connection = state.withLock({ $0.connection }) else { return }
        send(connection) { StopAllCaching(cache: $0) }
    }

    private func each<R: Request>(
        _ assets: [PHAsset],
        _ size: CGSize,
        _ contentMode: PHImageContentMode,
        _ options: PHImageRequestOptions?,
        _ make: @escaping @Sendable (String, CachedImages) -> R
    ) {
        guard let first = assets.first else { return }
        let request = ImageRequest(first, size, contentMode, options)
        for start in stride(from: 0, to: assets.count, by: CachedImages.maxAssets) {
            let part = assets[start..<min(assets.count, start + CachedImages.maxAssets)]
            let images = CachedImages(assets: part.map(\.id), like: request)
            send(first.connection) { make($0, images) }
        }
    }

    /// Sends a request about the cache after those before it.
    private func send<R: Request>(_ connection: LibraryConnection, _ make: @escaping @Sendable (String) -> R) {
        state.withLock { state in
            state.connection = connection
            let last = state.last
            state.last = connection.start { [weak self] in
                await last?.value
                guard let self else { return }
                // A thumbnailer that has restarted does not know the cache.
                for _ in 0..<2 {
                    guard let cache = await self.open(connection) else { return }
                    do throws(RPCError) {
                        _ = try await connection.ask(make(cache), of: connection.client.thumbnailer)
                        return
                    } catch {
                        guard error.errorCode == .handleExpired else { return }
                        self.forget(cache)
                    }
                }
            }
        }
    }

    private func open(_ connection: LibraryConnection) async -> String? {
        let (cache, allowsHighQuality) = state.withLock { ($0.cache, $0.allowsHighQuality) }
        if let cache { return cache }
        let request = OpenCache(allowsHighQuality: allowsHighQuality)
        let opened = try? await connection.ask(request, of: connection.client.thumbnailer).result.cache
        state.withLock { $0.cache = opened }
        return opened
    }

    private func forget(_ cache: String) { state.withLock { if $0.cache == cache { $0.cache = nil } } }

    override func prepared(_ request: ImageRequest, _ connection: LibraryConnection) async -> ImageRequest {
        let (cache, last) = state.withLock { ($0.cache, $0.last) }
        await last?.value
        var request = request
        request.cache = cache ?? state.withLock { $0.cache }
        return request
    }
}
