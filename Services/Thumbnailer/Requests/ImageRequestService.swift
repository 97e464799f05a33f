import Basics
import Contracts
import ImageFormats
import Imaging
import JSONValue
import Messaging
import PhotoModel

/// Handles requests for single images: looks up the asset, then finds or renders its rendition.
///
/// Existence and revision are checked before the cache: images of deleted assets or earlier edits are never returned.
struct ImageRequestService: Sendable {
    let assets: AssetResolver
    let renditions: RenditionProvider
    let caches: CachingManagers
    let originals: OriginalFiles

    /// Handles `image.request`: every path ends in one response, and no degraded image follows the final one.
    func reply(
        to request: ImageRequest,
        _ context: RequestContext
    ) async throws(RPCError) -> Reply {
        let state = try preparationState(of: request, context)
        let found = try await assets.resolve([request.asset], atLeast: request.atLeast)
        let response = try await response(request, found, context, preparationState: state)
        return try await ImageReplyBuilder.reply(response.description.json, delivering: response.bytes, context)
    }

    /// Finds or renders an image, and sends degraded ones before it.
    ///
    /// - Parameter reportsProgress: false if the progress of another download is reported instead
    func response(
        _ request: ImageRequest,
        _ found: AssetResolver.ResolvedAssets,
        _ context: RequestContext,
        preparationState: CachingManagerTable.PreparationState? = nil,
        reportsProgress: Bool = true
    ) async throws(RPCError) -> ImageResponse {
        let asset = try Self.asset(request.asset, of: found)
        let plan = try RenditionPlan(request, of: asset, for: context.limitedClient)
        // A later request for a larger image may show a cached one with these options as its degraded image.
        renditions.previews.rememberOptions(of: plan)
        let builder = ImageReplyBuilder(asset: asset, sequence: found.sequence, preparationState: preparationState)
        let mode = request.effectiveDeliveryMode(acceptsNotifications: context.acceptsNotifications)
        // To a client with a limited grant, the choice between a final and a degraded image would reveal whether others
        // have requested it.
        let hidesCache = mode == .fastFormat && context.limitedClient != nil
        if !hidesCache, let cached = renditions.cached(plan) { return builder.response(cached) }
        if let refusal = found.rpcError(of: plan, asset) { throw refusal }
        let original = try RenditionPlan.resource(of: asset, version: request.version)
        let progress = reportsProgress ? context : nil
        switch mode {
        case .highQualityFormat:
            return builder.response(try await rendered(plan, for: request, progress))
        case .fastFormat:
            if let degraded = await renditions.degraded(plan, of: original) {
                return builder.response(degraded, isDegraded: true)
            }
            if hidesCache, let cached = renditions.cached(plan) { return builder.response(cached) }
            return builder.response(try await rendered(plan, for: request, progress))
        case .opportunistic:
            guard originals.isLocal(plan.digest) else {
                // A degraded local image is sent first, then the requested image or the error.
                let sent = await sendDegraded(request, plan, original, builder, context.notifier)
                return builder.response(try await rendered(plan, for: request, progress), index: sent)
            }
            let (provided, sent) = try await opportunistic(
                request,
                plan,
                original,
                builder,
                context.notifier,
                progress
            )
            return builder.response(provided, index: sent)
        }
    }

    /// Renders an image that is not cached.
    ///
    /// - Parameter progress: the request whose client receives the progress of a download; nil for none
    private func rendered(
        _ plan: RenditionPlan,
        for request: ImageRequest,
        _ progress: RequestContext?
    ) async throws(RPCError) -> ProvidedRendition {
        try await renditions.rendered(
            plan,
            from: originals,
            of: request.asset,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            progress
        )
    }

    /// Returns the reply if the rendition is in memory and the asset's cache entry is valid.
    func cachedReply(to request: ImageRequest, _ context: RequestContext) -> Reply? {
        do throws(RPCError) {
            let state = try preparationState(of: request, context)
            guard let found = assets.cachedAssets([request.asset], atLeast: request.atLeast) else { return nil }
            let asset = try Self.asset(request.asset, of: found)
            let plan = try RenditionPlan(request, of: asset, for: context.limitedClient)
            guard let cached = renditions.cachedInMemory(plan, maxBytes: ReadResource.maxReplyBytes) else { return nil }
            renditions.previews.rememberOptions(of: plan)
            return ImageReplyBuilder(asset: asset, sequence: found.sequence, preparationState: state).reply(cached)
        } catch {
            // ``reply(to:_:)`` reports the errors.
            return nil
        }
    }

    /// Checks the request. Returns the image's state in the caching manager that it names.
    private func preparationState(
        of request: ImageRequest,
        _ context: RequestContext
    ) throws(RPCError) -> CachingManagerTable.PreparationState? {
        try RenditionPlan.check(request)
        try Self.check(request.format)
        guard let name = request.cache else { return nil }
        return try caches.preparationState(of: request, in: name, identity: context.identity)
    }

    private enum Step: Sendable {
        case final(Result<ProvidedRendition, RPCError>)
        /// The number of degraded images sent.
        case degraded(Int)
    }

    /// Returns the final image and the number of degraded images sent before it.
    private func opportunistic(
        _ request: ImageRequest,
        _ plan: RenditionPlan,
        _ original: AssetResource,
        _ builder: ImageReplyBuilder,
        _ notifier: Notifier,
        _ progress: RequestContext?
    ) async throws(RPCError) -> (ProvidedRendition, Int) {
        let (final, count) = await withTaskGroup(of: Step.self) { group in
            group.addTask {
                do throws(RPCError) {
                    return .final(.success(try await rendered(plan, for: request, progress)))
                } catch {
                    return .final(.failure(error))
                }
            }
            group.addTask { .degraded(await sendDegraded(request, plan, original, builder, notifier)) }
            var final: Result<ProvidedRendition, RPCError>?
            var count = 0
            // The response is sent after both have ended, so no degraded image can follow it.
            for await step in group {
                switch step {
                case .final(let outcome):
                    final = outcome
                    group.cancelAll()
                case .degraded(let sent): count = sent
                }
            }
            return (final, count)
        }
        guard let final else { throw .noRendition }
        return (try final.get(), count)
    }

    /// Sends degraded images, each larger than the one before. Returns their number.
    private func sendDegraded(
        _ request: ImageRequest,
        _ plan: RenditionPlan,
        _ original: AssetResource,
        _ builder: ImageReplyBuilder,
        _ notifier: Notifier
    ) async -> Int {
        var largest = 0
        var sent = 0
        func send(_ degraded: ProvidedRendition?) async {
            guard let degraded, degraded.rendition.area > largest, !Task.isCancelled else { return }
            // A client that cannot receive notifications gets the response only.
            guard (try? await builder.notify(degraded, index: sent, notifier)) != nil else { return }
            largest = degraded.rendition.area
            sent += 1
        }
        await send(await renditions.degraded(plan, of: original))
        if request.allowsSecondaryDegradedImage, !Task.isCancelled { await send(await renditions.quickDecode(plan)) }
        return sent
    }

    static func asset(_ id: ObjectID, of found: AssetResolver.ResolvedAssets) throws(RPCError) -> AssetSummary {
        guard let asset = found.assets[id] else { throw .assetNotFound(id) }
        return asset
    }

    /// Throws if this build cannot encode the format, before any work is done.
    private static func check(_ format: DeliveredFormat) throws(RPCError) {
        let offered = DeliveredFormat.allCases.filter { ImageFormat(rawValue: $0.rawValue)?.canEncode == true }
        guard offered.contains(format) else {
            throw .cannotEncode(format, offered: offered)
        }
    }
}

/// An image that is ready to be sent.
struct ImageResponse: Sendable {
    let description: ImageRequest.Result
    let bytes: Bytes
}

extension ImageRequest {
    /// Returns the delivery mode that applies: a synchronous request, and a client that cannot receive notifications,
    /// get one high-quality image (D5).
    func effectiveDeliveryMode(acceptsNotifications: Bool) -> ImageDeliveryMode {
        if isSynchronous { return .highQualityFormat }
        return deliveryMode == .opportunistic && !acceptsNotifications ? .highQualityFormat : deliveryMode
    }
}

extension EncodedRendition {
    var area: Int { pixelWidth * pixelHeight }
}

extension RPCError {
    /// True if the error concerns the service and not the asset.
    var concernsService: Bool {
        switch errorCode {
        case .busy, .unavailable, .userCancelled, .deadlineExceeded, .interrupted, .connectionLost: true
        default: false
        }
    }
}
