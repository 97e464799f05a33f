import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

extension AssetResource {
    /// True if the stored file has the size that the resource needs.
    func fits(_ file: ResourceFile) -> Bool {
        guard let offset else { return file.size == size }
        return offset <= file.size - size
    }

    /// The range of the file that the resource consists of; nil for the whole file.
    var range: Range<Int64>? { offset.map { $0..<$0 + size } }
}

/// Implements `resource.read`: sends stored bytes in chunks with byte credits, or in a single response that is never
/// cut.
struct ResourceDelivery: Sendable {
    let store: LibraryStore
    let blockingIO: BlockingIOExecutor
    let opener: ResourceOpener

    /// Sends the bytes of a resource.
    ///
    /// - Parameter isService: true for a client that may read files of earlier versions of an asset by their digest
    func read(
        _ request: ReadResource,
        _ context: RequestContext,
        view: LimitedView? = nil,
        isService: Bool = false
    ) async throws -> Reply {
        let asset = try await store.read { reader in
            guard try view?.contains(request.asset, reader) ?? true else { return nil as Asset? }
            return try reader.assets.asset(request.asset)
        }
        guard let asset else {
            throw ResourceError.noAsset(request.asset)
        }
        var named = asset.resource(request.type)
        if let digest = request.digest?.lowercased() {
            named = asset.resources.first { $0.digest == digest && $0.offset == nil }
            if named == nil, isService { named = await earlierResource(digest, request.type, context) }
        }
        guard let resource = named, let digest = ResourceDigest(resource.digest) else {
            if request.digest != nil { throw ResourceError.unknownDigest(asset.id) }
            throw ResourceError.noResource(asset.id, request.type, available: asset.resources.map(\.type))
        }
        guard request.offset <= resource.size else {
            throw ResourceError.offsetOutOfRange(offset: request.offset, size: resource.size)
        }
        let length = min(request.length ?? .max, resource.size - request.offset)
        let isStreamed = context.acceptsNotifications && context.credit != nil
        guard isStreamed || length <= ReadResource.maxReplyBytes else {
            throw ResourceError.rangeTooLong(bytes: length, size: resource.size)
        }
        let source = WorkSource(of: context)
        let file = try await opener.open(
            digest,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            context
        ).file
        guard resource.fits(file) else {
            throw ResourceError.damaged
        }
        if isStreamed {
            return try await stream(file, resource, request.offset, length, source, context.notifier)
        }
        return try await singleResponse(file, resource, request, length, source)
    }

    /// Returns a resource that an asset had before; nil if its file is no longer stored.
    private func earlierResource(
        _ text: String,
        _ type: ResourceType,
        _ context: RequestContext
    ) async -> AssetResource? {
        guard let digest = ResourceDigest(text) else { return nil }
        let source = WorkSource(of: context)
        let file = try? await blockingIO.run(for: source) { [resources = opener.resources] in
            try resources.open(digest)
        }
        return file.map { AssetResource(type: type, digest: text, size: $0.size, contentType: "public.data") }
    }

    private func singleResponse(
        _ file: ResourceFile,
        _ resource: AssetResource,
        _ request: ReadResource,
        _ length: Int64,
        _ source: BlockingIOExecutor.Source
    ) async throws -> Reply {
        let count = Int(length)
        let isWhole = request.offset == 0 && Int64(count) == resource.size
        let start = (resource.offset ?? 0) + request.offset
        if isWhole, resource.offset != nil { try await blockingIO.verify(file, for: source) }
        let bytes = try await blockingIO.run(for: source) {
            // A read of the whole resource is verified against its digest.
            isWhole && resource.offset == nil
                ? try file.readAll(limit: Int64(ReadResource.maxReplyBytes))
                : try file.read(offset: start, count: count)
        }
        guard bytes.count == count else { throw ResourceError.truncated }
        let result = ReadResource.Result(resource: resource, offset: request.offset, length: Int64(count))
        return Reply(result.json, attachments: [bytes])
    }

    private func stream(
        _ file: ResourceFile,
        _ resource: AssetResource,
        _ offset: Int64,
        _ length: Int64,
        _ source: BlockingIOExecutor.Source,
        _ notifier: Notifier
    ) async throws -> Reply {
        if offset == 0, length == resource.size { try await blockingIO.verify(file, for: source) }
        var sent: Int64 = 0
        while sent < length {
            let (position, count) = (offset + sent, Int(min(length - sent, Int64(ReadResource.chunkBytes))))
            let start = (resource.offset ?? 0) + position
            let bytes = try await blockingIO.run(for: source) { try file.read(offset: start, count: count) }
            guard bytes.count == count else { throw ResourceError.truncated }
            try await notifier.notify(
                ReadResource.notification,
                ["offset": .int(position)],
                attachments: [bytes]
            )
            sent += Int64(count)
        }
        return Reply(ReadResource.Result(resource: resource, offset: offset, length: sent).json)
    }
}
