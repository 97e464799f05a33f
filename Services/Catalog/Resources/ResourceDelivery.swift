import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Implements `resource.read`: sends stored bytes in chunks with byte credits, or in a single response that is never cut.
struct ResourceDelivery: Sendable {
    let store: LibraryStore
    let resources: ResourceStore
    let blockingIO: BlockingIOExecutor

    func read(
        _ request: ReadResource,
        _ context: RequestContext
    ) async throws -> Reply {
        let asset = try await store.read { try $0.assets.asset(request.asset) }
        guard let asset else {
            throw ErrorCode.identifierNotFound.error(
                "there is no asset with the identifier \(request.asset)",
                ["id": .string(request.asset.text)]
            )
        }
        guard let resource = asset.resource(request.type), let digest = ResourceDigest(resource.digest) else {
            let types = asset.resources.map(\.type.rawValue)
            throw ErrorCode.missingResource.error(
                "\(asset.id) has no resource \(request.type.rawValue)",
                ["allowed": JSON(types)]
            )
        }
        guard request.offset <= resource.size else {
            throw ErrorCode.rangeError.error(
                "the resource has \(resource.size) bytes, so it cannot be read from offset \(request.offset)",
                ["size": .int(resource.size)]
            )
        }
        let length = min(request.length ?? .max, resource.size - request.offset)
        let isStreamed = context.acceptsNotifications && context.credit != nil
        guard isStreamed || length <= ReadResource.maxReplyBytes else { throw Self.tooLong(length, of: resource) }
        let (resources, source) = (resources, BlockingIOExecutor.Source.connection(context.connection))
        let file = try await blockingIO.run(for: source) { try resources.open(digest) }
        guard file.size == resource.size else {
            throw ErrorCode.resourceChanged.error("the stored bytes are damaged; restore the file from a backup")
        }
        if isStreamed {
            return try await stream(file, resource, request.offset, length, source, context.notifier)
        }
        return try await single(file, resource, request, length, source)
    }

    private func single(
        _ file: ResourceFile,
        _ resource: AssetResource,
        _ request: ReadResource,
        _ length: Int64,
        _ source: BlockingIOExecutor.Source
    ) async throws -> Reply {
        let count = Int(length)
        let isWhole = request.offset == 0 && Int64(count) == resource.size
        let bytes = try await blockingIO.run(for: source) {
            // A read of the whole resource is verified against its digest.
            isWhole
                ? try file.readAll(limit: Int64(ReadResource.maxReplyBytes))
                : try file.read(offset: request.offset, count: count)
        }
        guard bytes.count == count else { throw Self.short }
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
            let bytes = try await blockingIO.run(for: source) { try file.read(offset: position, count: count) }
            guard bytes.count == count else { throw Self.short }
            try await notifier.notify(
                ReadResource.notification,
                ["offset": .int(position)],
                attachments: [bytes]
            )
            sent += Int64(count)
        }
        return Reply(ReadResource.Result(resource: resource, offset: offset, length: sent).json)
    }

    /// Returns the error for a range that does not fit in one response: a part of it would look like a whole file.
    private static func tooLong(_ length: Int64, of resource: AssetResource) -> RPCError {
        let limit = ReadResource.maxReplyBytes
        return ErrorCode.limitExceeded.error(
            "\(length) bytes were requested, and a response carries \(limit); read ranges of at most \(limit) bytes with "
                + "offset and length, or give credit on a DEALER socket to receive resource.chunk notifications",
            ["limit": JSON(limit), "bytes": .int(length), "size": .int(resource.size)]
        )
    }

    private static let short = ErrorCode.resourceChanged.error(
        "the stored file is truncated; restore it from a backup"
    )
}
