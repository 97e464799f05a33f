import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Implements `resource.export`: writes a resource, whole or not at all, to a file or to an attachment.
struct ResourceExport: Sendable {
    let store: LibraryStore
    let blockingIO: BlockingIOExecutor
    let opener: ResourceOpener

    /// Exports a resource.
    ///
    /// - Parameter view: the view of an identity with a limited grant; nil for the whole library
    func export(
        _ request: ExportResource,
        _ context: RequestContext,
        view: LimitedView? = nil
    ) async throws -> Reply {
        if let path = request.path { try check(path, context.identity) }
        let (resource, digest) = try await resource(request, view)
        let source = WorkSource(of: context)
        let file = try await opener.open(
            digest,
            isNetworkAccessAllowed: request.isNetworkAccessAllowed,
            context
        ).file
        guard let path = request.path else {
            guard resource.fits(file) else { throw ResourceError.damaged }
            guard resource.size <= Int64(ReadResource.maxReplyBytes) else {
                throw ResourceError.exportTooLarge(request.asset, resource.type, bytes: resource.size)
            }
            // The bytes are verified against the digest.
            let bytes: Bytes
            if let offset = resource.offset {
                try await blockingIO.verify(file, for: source)
                bytes = try await blockingIO.run(for: source) {
                    try file.read(offset: offset, count: Int(resource.size))
                }
            } else {
                bytes = try await blockingIO.run(for: source) { try file.readAll(limit: file.size) }
            }
            return Reply(ExportResource.Result(resource: resource).json, attachments: [bytes])
        }
        do {
            try await write(file, resource.range, to: path, replaces: request.replaces, source)
        } catch let error as StorageError {
            throw ResourceError.exportFailed(error, path: path)
        }
        return Reply(ExportResource.Result(resource: resource, path: path).json)
    }

    /// Checks a path. Only the user who owns the service may choose where it writes.
    private func check(_ path: String, _ identity: String) throws {
        try ServiceIdentities.checkOwner(identity, to: "export to a path")
        let parts = path.split(separator: "/")
        guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0), !parts.contains("..") else {
            throw ResourceError.exportPathNotAbsolute
        }
        guard !parts.starts(with: store.folder.split(separator: "/")) else {
            throw ResourceError.exportInLibrary
        }
    }

    private func resource(
        _ request: ExportResource,
        _ view: LimitedView?
    ) async throws -> (AssetResource, ResourceDigest) {
        let asset = try await store.read { reader in
            try view?.contains(request.asset, reader) == false ? nil : reader.assets.asset(request.asset)
        }
        guard let asset else {
            throw ResourceError.noAsset(request.asset)
        }
        guard let resource = asset.resource(request.type), let digest = ResourceDigest(resource.digest) else {
            throw ResourceError.noResource(asset.id, request.type, available: asset.resources.map(\.type))
        }
        return (resource, digest)
    }

    private func write(
        _ file: ResourceFile,
        _ range: Range<Int64>?,
        to path: String,
        replaces: Bool,
        _ source: BlockingIOExecutor.Source
    ) async throws {
        try await blockingIO.job(BlockingIOExecutor.lane(forBytes: file.size), for: source) { steps in
            let export = try await steps.run { try FileExport(of: file, range, to: path, replaces: replaces) }
            do {
                while try await steps.run({ try export.next() }) { try Task.checkCancellation() }
                try await steps.run { try export.finish() }
            } catch {
                export.cancel()
                throw error
            }
        }
    }
}
