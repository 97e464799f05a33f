import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Builds the messages that describe and deliver an image.
struct ImageReplyBuilder: Sendable {
    let asset: AssetSummary
    /// The sequence at which the asset was read.
    let sequence: Int64
    /// The image's state in the caching manager that the request names.
    let preparationState: CachingManagerTable.PreparationState?

    /// Returns an image and its description, from which ``reply(_:delivering:_:)`` builds the reply.
    func response(
        _ provided: ProvidedRendition,
        index: Int = 0,
        isDegraded: Bool = false
    ) -> ImageResponse {
        ImageResponse(
            description: result(provided, index: index, isDegraded: isDegraded, isFinal: true),
            bytes: provided.rendition.bytes
        )
    }

    /// Returns the reply for bytes that fit into one attachment.
    func reply(_ provided: ProvidedRendition) -> Reply {
        let result = result(provided, index: 0, isDegraded: false, isFinal: true)
        return Reply(result.json, attachments: [provided.rendition.bytes])
    }

    /// Sends a degraded image as a notification before the response.
    func notify(_ provided: ProvidedRendition, index: Int, _ notifier: Notifier) async throws(RPCError) {
        let result = result(provided, index: index, isDegraded: true, isFinal: false)
        try await notifier.notify(
            ImageDelivery.degraded,
            result.json.objectValue ?? [:],
            attachments: [provided.rendition.bytes]
        )
    }

    private func result(
        _ provided: ProvidedRendition,
        index: Int,
        isDegraded: Bool,
        isFinal: Bool
    ) -> ImageRequest.Result {
        let rendition = provided.rendition
        var result = ImageRequest.Result(
            asset: asset.id,
            contentRevision: asset.contentRevision,
            sequence: sequence,
            mimeType: rendition.mimeType,
            pixelWidth: rendition.pixelWidth,
            pixelHeight: rendition.pixelHeight,
            isDegraded: isDegraded,
            isUpscaled: rendition.isUpscaled,
            isCacheHit: provided.isCacheHit
        )
        result.isFinal = isFinal
        result.index = index
        result.size = Int64(rendition.bytes.count)
        result.cacheReason = reason(provided)
        result.frameTime = rendition.frameTime
        result.hdrHeadroom = rendition.headroom
        return result
    }

    private func reason(_ provided: ProvidedRendition) -> CacheReason {
        switch (preparationState, provided.reason) {
        case (.prepared, .memory), (.prepared, .disk): .prepared
        case (.waiting, .rendered), (.waiting, .shared): .notPreparedYet
        case (.differs, .rendered): .optionsDiffer
        default: provided.reason
        }
    }

    /// Returns the reply with the bytes as its attachments. Bytes that do not fit into one message are sent before it,
    /// in notifications, limited by the client's credit.
    static func reply(
        _ result: JSON,
        delivering bytes: Bytes,
        _ context: RequestContext
    ) async throws(RPCError) -> Reply {
        let limit = ReadResource.maxReplyBytes
        if bytes.count <= limit { return Reply(result, attachments: [bytes]) }
        if bytes.count <= ImageDelivery.maxAttachedBytes {
            let parts = stride(from: 0, to: bytes.count, by: limit).map {
                Array(bytes[$0..<min($0 + limit, bytes.count)])
            }
            return Reply(result, attachments: parts)
        }
        guard context.acceptsNotifications else { throw .imageTooLarge(bytes: Int64(bytes.count)) }
        for start in stride(from: 0, to: bytes.count, by: ImageDelivery.chunkBytes) {
            try await context.notifier.notify(
                ImageDelivery.chunk,
                ["offset": JSON(start)],
                attachments: [Array(bytes[start..<min(start + ImageDelivery.chunkBytes, bytes.count)])]
            )
        }
        return Reply(result)
    }
}
