public import Foundation
import Basics
import Contracts
import Dispatch
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import Synchronization

/// Prepares images before they are requested: `PHCachingImageManager` (S-53 to S-58).
///
/// Each instance has its own list of images. A request uses a prepared image only if all its values, including its
/// options, are those of the caching request. An image that is not prepared is rendered when it is requested.
public final class PHCachingImageManager: PHImageManager, @unchecked Sendable {
    private struct State {
        var allowsHighQuality = true
        /// The open caches at the thumbnailers, by the address of the thumbnailer.
        var caches: [EndpointAddress: String] = [:]
        var connection: LibraryConnection?
        /// The last call in the queue. Each call waits for the previous one.
        var lastCall: Task<Void, Never>?
        /// True if the thumbnailer did not answer the last call.
        var isUnreachable = false
    }

    /// The deadline of a call. It is short, because requests for images wait for the previous calls.
    private static let callDeadline = Duration.seconds(2)

    private let state = Mutex(State())

    override public init() { super.init() }

    deinit {
        let (caches, connection, lastCall) = state.withLock { ($0.caches, $0.connection, $0.lastCall) }
        guard !caches.isEmpty, let connection else { return }
        connection.start {
            await lastCall?.value
            for thumbnailer in connection.client.thumbnailer.instances {
                guard let cache = caches[thumbnailer.address] else { continue }
                _ = try? await connection.ask(CloseCache(cache: cache), of: thumbnailer)
            }
        }
    }

    /// If false, images are prepared only from sources that are fast to read: previews, and originals that can be
    /// decoded at a fraction of their size.
    public var allowsCachingHighQualityImages: Bool {
        get { state.withLock { $0.allowsHighQuality } }
        set {
            let connection = state.withLock { state in
                state.allowsHighQuality = newValue
                return state.connection
            }
            guard let connection else { return }
            sendToAll(connection) { ConfigureCache(cache: $0, allowsHighQuality: newValue) }
        }
    }

    /// Prepares images of assets, the most urgent first. Returns at once.
    public func startCachingImages(
        for assets: [PHAsset],
        targetSize: CGSize,
        contentMode: PHImageContentMode,
        options: PHImageRequestOptions?
    ) {
        sendInGroups(assets, targetSize, contentMode, options) { StartCaching(cache: $0, images: $1) }
    }

    /// Removes images from the list. All values must be those with which they were added.
    public func stopCachingImages(
        for assets: [PHAsset],
        targetSize: CGSize,
        contentMode: PHImageContentMode,
        options: PHImageRequestOptions?
    ) {
        sendInGroups(assets, targetSize, contentMode, options) { StopCaching(cache: $0, images: $1) }
    }

    /// Clears the list and ends all preparation.
    public func stopCachingImagesForAllAssets() {
        guard let connection = state.withLock({ $0.connection }) else { return }
        sendToAll(connection) { StopAllCaching(cache: $0) }
    }

    /// Sends requests for groups of assets, each to the thumbnailer of the group.
    private func sendInGroups<R: Request>(
        _ assets: [PHAsset],
        _ size: CGSize,
        _ contentMode: PHImageContentMode,
        _ options: PHImageRequestOptions?,
        _ makeRequest: @escaping @Sendable (String, CachedImages) -> R
    ) {
        guard let first = assets.first else { return }
        let request = ImageRequest(first, size, contentMode, options)
        for start in stride(from: 0, to: assets.count, by: CachedImages.maxAssets) {
            let part = assets[start..<min(assets.count, start + CachedImages.maxAssets)]
            let ids = part.map(\.id)
            let connection = first.connection
            enqueue(connection) { manager in
                for (thumbnailer, assets) in await connection.client.thumbnailer.divide(ids) {
                    let images = CachedImages(assets: assets, like: request)
                    await manager.send(connection, to: thumbnailer) { makeRequest($0, images) }
                }
            }
        }
    }

    /// Sends a request for each open cache.
    private func sendToAll<R: Request>(
        _ connection: LibraryConnection,
        _ makeRequest: @escaping @Sendable (String) -> R
    ) {
        enqueue(connection) { manager in
            let used = manager.state.withLock { Set($0.caches.keys) }
            for thumbnailer in connection.client.thumbnailer.instances where used.contains(thumbnailer.address) {
                await manager.send(connection, to: thumbnailer, makeRequest)
            }
        }
    }

    /// Runs a call after the previous ones.
    private func enqueue(
        _ connection: LibraryConnection,
        _ work: @escaping @Sendable (PHCachingImageManager) async -> Void
    ) {
        state.withLock { state in
            state.connection = connection
            let previous = state.lastCall
            state.lastCall = connection.start { [weak self] in
                await previous?.value
                if let self { await work(self) }
            }
        }
    }

    private func send<R: Request>(
        _ connection: LibraryConnection,
        to thumbnailer: ServiceClient,
        _ makeRequest: @Sendable (String) -> R
    ) async {
        // While the thumbnailer cannot be reached, only the first call waits for it.
        guard thumbnailer.isConnected || !state.withLock({ $0.isUnreachable }) else { return }
        // A thumbnailer that has restarted does not know the cache.
        for _ in 0..<2 {
            var cache: String?
            do throws(RPCError) {
                let opened = try await open(connection, thumbnailer)
                cache = opened
                _ = try await connection.ask(makeRequest(opened), of: thumbnailer, deadline: Self.callDeadline)
                state.withLock { $0.isUnreachable = false }
                return
            } catch {
                state.withLock { $0.isUnreachable = error.isTransient }
                guard error.errorCode == .handleExpired, let cache else { return }
                forget(cache)
            }
        }
    }

    private func open(
        _ connection: LibraryConnection,
        _ thumbnailer: ServiceClient
    ) async throws(RPCError) -> String {
        let address = thumbnailer.address
        let (cache, allowsHighQuality) = state.withLock { ($0.caches[address], $0.allowsHighQuality) }
        if let cache { return cache }
        let request = OpenCache(allowsHighQuality: allowsHighQuality)
        let opened = try await connection.ask(request, of: thumbnailer, deadline: Self.callDeadline).result.cache
        state.withLock { $0.caches[address] = opened }
        return opened
    }

    override func forget(_ cache: String) {
        state.withLock { state in state.caches = state.caches.filter { $0.value != cache } }
    }

    override func prepared(_ request: ImageRequest, _ connection: LibraryConnection) async -> ImageRequest {
        await state.withLock { $0.lastCall }?.value
        var request = request
        let thumbnailer = await connection.client.thumbnailer.instance(for: request.asset)
        request.cache = state.withLock { $0.caches[thumbnailer.address] }
        return request
    }
}
