import Contracts
import Imaging
import JSONValue
import Messaging
import PhotoModel

/// Answers for single pictures: looks the asset up, then has the picture made or finds it.
///
/// Existence and revision come first, whatever is in the caches: what was deleted or edited is never served.
struct PictureService: Sendable {
    let source: AssetSource
    let desk: PictureDesk
    let caches: CachingManagers

    /// `image.request` (spec 8.1): every path ends in one answer, and no degraded image follows the final one.
    func image(
        _ request: ImageRequest,
        _ incoming: IncomingRequest,
        _ notifier: Notifier
    ) async throws(RPCError) -> Reply {
        let cached = try standing(of: request, incoming)
        let answer = try await source.assets([request.asset], atLeast: request.atLeast)
        let asset = try Self.asset(request.asset, of: answer)
        let plan = try RenditionPlan(request, of: asset)
        desk.previews.note(plan)
        let reply = ImageReply(asset: asset, sequence: answer.sequence, standing: cached)
        if let held = desk.held(plan) {
            return try await reply.send(held, index: 0, incoming, notifier)
        }
        if let refusal = answer.refusal(of: plan, asset) { throw refusal }
        switch request.effectiveDeliveryMode(acceptsNotifications: incoming.acceptsNotifications) {
        case .highQualityFormat:
            return try await reply.send(try await desk.made(plan), index: 0, incoming, notifier)
        case .fastFormat:
            if let low = await low(plan) {
                return try await reply.send(low, index: 0, isDegraded: true, incoming, notifier)
            }
            return try await reply.send(try await desk.made(plan), index: 0, incoming, notifier)
        case .opportunistic:
            let (delivery, before) = try await opportunistic(request, plan, reply, notifier)
            return try await reply.send(delivery, index: before, incoming, notifier)
        }
    }

    /// Its answer where memory has the picture and the feed vouches for the asset.
    func imageAtHand(_ request: ImageRequest, _ incoming: IncomingRequest) -> Reply? {
        do throws(RPCError) {
            let cached = try standing(of: request, incoming)
            guard let answer = source.known([request.asset], atLeast: request.atLeast) else { return nil }
            let asset = try Self.asset(request.asset, of: answer)
            let plan = try RenditionPlan(request, of: asset)
            guard let held = desk.heldInMemory(plan, maxBytes: ReadResource.maxReplyBytes) else { return nil }
            desk.previews.note(plan)
            return ImageReply(asset: asset, sequence: answer.sequence, standing: cached).reply(held)
        } catch {
            // Told by the long way.
            return nil
        }
    }

    /// Checks the request; what the caching manager that it names knows of it.
    private func standing(
        of request: ImageRequest,
        _ incoming: IncomingRequest
    ) throws(RPCError) -> CacheTable.Standing? {
        try RenditionPlan.check(request)
        try Self.check(request.format)
        guard let name = request.cache else { return nil }
        return try caches.standing(of: request, in: name, owner: incoming.identity)
    }

    private enum Step: Sendable {
        case final(Result<PictureDesk.Delivery, RPCError>)
        /// Degraded images that were sent.
        case degraded(Int)
    }

    /// The final image, and how many degraded ones went before it.
    private func opportunistic(
        _ request: ImageRequest,
        _ plan: RenditionPlan,
        _ reply: ImageReply,
        _ notifier: Notifier
    ) async throws(RPCError) -> (PictureDesk.Delivery, Int) {
        let (final, count) = await withTaskGroup(of: Step.self) { group in
            group.addTask {
                do throws(RPCError) { return .final(.success(try await desk.made(plan))) } catch {
                    return .final(.failure(error))
                }
            }
            group.addTask { .degraded(await sendDegraded(request, plan, reply, notifier)) }
            var final: Result<PictureDesk.Delivery, RPCError>?
            var count = 0
            // The answer goes when both have ended, so nothing degraded can come after it.
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
        guard let final else { throw Refusal.internalError.error("a picture was neither made nor refused") }
        return (try final.get(), count)
    }

    private func sendDegraded(
        _ request: ImageRequest,
        _ plan: RenditionPlan,
        _ reply: ImageReply,
        _ notifier: Notifier
    ) async -> Int {
        var largest = 0
        var sent = 0
        func send(_ low: PictureDesk.Delivery?) async {
            guard let low, low.rendition.area > largest, !Task.isCancelled else { return }
            // Whoever cannot be told learns it from the answer.
            guard (try? await reply.notify(low, index: sent, notifier)) != nil else { return }
            largest = low.rendition.area
            sent += 1
        }
        await send(await low(plan))
        if request.allowsSecondaryDegradedImage, !Task.isCancelled { await send(await desk.quick(plan)) }
        return sent
    }

    private func low(_ plan: RenditionPlan) async -> PictureDesk.Delivery? { await desk.low(plan) }

    static func asset(_ id: ObjectID, of answer: AssetSource.Answer) throws(RPCError) -> AssetFacts {
        guard let asset = answer.assets[id] else { throw notFound(id) }
        return asset
    }

    static func notFound(_ id: ObjectID) -> RPCError {
        Refusal.identifierNotFound.error("there is no asset \(id)", ["id": .string(id.text)])
    }

    /// Refused before anything is done where the build cannot write the format.
    private static func check(_ format: DeliveredFormat) throws(RPCError) {
        let offered = DeliveredFormat.allCases.filter { ImageFormat(rawValue: $0.rawValue)?.canEncode == true }
        guard offered.contains(format) else {
            throw Refusal.unsupportedFormat.error(
                "\(format.rawValue) cannot be written here; ask for \(offered.map(\.rawValue).joined(separator: ", "))",
                ["formats": JSON(offered.map(\.rawValue))]
            )
        }
    }
}

extension ImageRequest {
    /// A synchronous request gets the one good image (D5), and so does who cannot be told anything in between.
    func effectiveDeliveryMode(acceptsNotifications: Bool) -> ImageDeliveryMode {
        if isSynchronous { return .highQualityFormat }
        return deliveryMode == .opportunistic && !acceptsNotifications ? .highQualityFormat : deliveryMode
    }
}

extension StoredRendition {
    var area: Int { pixelWidth * pixelHeight }
}

extension RPCError {
    /// It says something about the service and nothing about the asset.
    var isOfTheService: Bool {
        switch refusal {
        case .busy, .unavailable, .userCancelled, .deadlineExceeded, .interrupted, .connectionLost: true
        default: false
        }
    }
}
