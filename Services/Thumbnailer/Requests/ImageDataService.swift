import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Handles `image.data`: the stored bytes unchanged, with the type and orientation needed to show them (S-52).
struct ImageDataService: Sendable {
    let assets: AssetResolver
    let renditions: RenditionProvider
    let blockingIO: BlockingIOExecutor
    let originals: OriginalFiles

    func data(
        _ request: ImageData,
        _ context: RequestContext
    ) async throws(RPCError) -> Reply {
        let found = try await assets.resolve([request.asset], atLeast: request.atLeast)
        let asset = try ImageRequestService.asset(request.asset, of: found)
        let resource = try RenditionPlan.resource(of: asset, version: request.version)
        guard !resource.isVideo else {
            throw .isVideo(asset)
        }
        if let refusal = found.rpcError(of: resource.digest, asset) { throw refusal }
        try await originals.require(
            resource.digest,
            of: asset.id,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            context
        )
        let info = try await info(of: resource)
        let file = try renditions.open(resource.digest)
        let result = ImageData.Result(
            asset: asset.id,
            contentRevision: asset.contentRevision,
            sequence: found.sequence,
            digest: resource.digest,
            size: file.size,
            // For raw files the catalog's type names the manufacturer; the decoder's does not.
            contentType: resource.isRaw ? resource.contentType : info.contentType,
            mimeType: info.mimeType,
            orientation: info.orientation,
            pixelWidth: info.pixelWidth,
            pixelHeight: info.pixelHeight
        ).json
        let (blockingIO, client) = (blockingIO, WorkSource(of: context))
        if file.size <= Int64(ImageDelivery.maxAttachedBytes) {
            let bytes = try await convertingErrors(of: resource.digest) {
                try await blockingIO.run(for: client) { try file.readAll(limit: Int64(ImageDelivery.maxAttachedBytes)) }
            }
            return try await ImageReplyBuilder.reply(result, delivering: bytes, context)
        }
        guard context.acceptsNotifications else { throw .imageTooLarge(bytes: file.size) }
        try await convertingErrors(of: resource.digest) { try await blockingIO.verify(file, for: client) }
        var offset: Int64 = 0
        while offset < file.size {
            let (start, count) = (offset, ImageDelivery.chunkBytes)
            let bytes = try await convertingErrors(of: resource.digest) {
                try await blockingIO.run(for: client) { try file.read(offset: start, count: count) }
            }
            guard !bytes.isEmpty else { throw RPCError.damagedBytes }
            try await context.notifier.notify(ImageDelivery.chunk, ["offset": .int(offset)], attachments: [bytes])
            offset += Int64(bytes.count)
        }
        return Reply(result)
    }

    /// Returns the file's type and orientation. A file that cannot be decoded, or is too large for a worker, is
    /// also delivered, because the client may know its format.
    private func info(of resource: AssetResource) async throws(RPCError) -> ImageFileInfo {
        do throws(RPCError) {
            return try await renditions.inspect(resource.digest)
        } catch {
            switch error.errorCode {
            case .unsupportedFormat, .invalidResource, .limitExceeded: break
            default: throw error
            }
            // Longer sides are reported as unknown.
            let isWithinLimit = max(resource.pixelWidth, resource.pixelHeight) <= ImageFileInfo.maxSide
            return ImageFileInfo(
                contentType: resource.contentType,
                mimeType: "application/octet-stream",
                orientation: 1,
                pixelWidth: isWithinLimit ? resource.pixelWidth : 0,
                pixelHeight: isWithinLimit ? resource.pixelHeight : 0
            )
        }
    }

    /// Runs `body` and converts its errors.
    private func convertingErrors<Value>(
        of digest: String,
        _ body: () async throws -> Value
    ) async throws(RPCError) -> Value {
        do {
            return try await body()
        } catch let error as RPCError {
            throw error
        } catch StorageError.resourceChanged {
            await originals.resources.removeIfDamaged(digest)
            throw .damagedBytes
        } catch let error as StorageError {
            throw .unreadableBytes(error)
        } catch {
            throw .requestCancelled
        }
    }
}
