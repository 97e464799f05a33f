import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel
import Storage

/// Implements `resource.export`: a whole resource or nothing, in a file or as an attachment.
struct ResourceExport: Sendable {
    let store: LibraryStore
    let resources: ResourceStore
    let blockingIO: BlockingIOExecutor

    func export(_ request: ExportResource, _ context: RequestContext) async throws -> Reply {
        if let path = request.path { try check(path, context.identity) }
        let (resource, digest) = try await resource(request)
        let source = BlockingIOExecutor.Source.connection(context.connection)
        let file = try await blockingIO.run(for: source) { [resources] in try resources.open(digest) }
        guard let path = request.path else {
            guard file.size <= Int64(ReadResource.maxReplyBytes) else {
                throw ErrorCode.limitExceeded.error(
                    "the \(resource.type.rawValue) of \(request.asset) has \(file.size) bytes and a response carries"
                        + " \(ReadResource.maxReplyBytes): give a path, or use resource.read",
                    ["limit": JSON(ReadResource.maxReplyBytes), "bytes": .int(file.size)]
                )
            }
            // Verified against its digest.
            let bytes = try await blockingIO.run(for: source) { try file.readAll(limit: file.size) }
            return Reply(ExportResource.Result(resource: resource).json, attachments: [bytes])
        }
        do {
            try await write(file, to: path, replaces: request.replaces, source)
        } catch let error as StorageError {
            throw Self.rpcError(error, path)
        }
        return Reply(ExportResource.Result(resource: resource, path: path).json)
    }

    /// Only the user who owns the service may choose where it writes.
    private func check(_ path: String, _ identity: String) throws {
        try ServiceIdentities.checkOwner(identity, to: "export to a path")
        let parts = path.split(separator: "/")
        guard path.hasPrefix("/"), !path.hasSuffix("/"), !path.utf8.contains(0), !parts.contains("..") else {
            throw ErrorCode.invalidParams.error("path must be an absolute path without ..", ["parameter": "path"])
        }
        guard !parts.starts(with: store.path.split(separator: "/").dropLast()) else {
            throw ErrorCode.invalidOptions.error(
                "the path is inside the library's own folder; choose another",
                ["parameter": "path"]
            )
        }
    }

    private func resource(_ request: ExportResource) async throws -> (AssetResource, ResourceDigest) {
        guard let asset = try await store.read({ try $0.assets.asset(request.asset) }) else {
            throw ErrorCode.identifierNotFound.error(
                "there is no asset with the identifier \(request.asset)",
                ["id": .string(request.asset.text)]
            )
        }
        guard let resource = asset.resource(request.type), let digest = ResourceDigest(resource.digest) else {
            throw ErrorCode.missingResource.error(
                "\(asset.id) has no resource \(request.type.rawValue)",
                ["allowed": JSON(asset.resources.map(\.type.rawValue))]
            )
        }
        return (resource, digest)
    }

    private func write(
        _ file: ResourceFile,
        to path: String,
        replaces: Bool,
        _ source: BlockingIOExecutor.Source
    ) async throws {
        try await blockingIO.job(BlockingIOExecutor.lane(forBytes: file.size), for: source) { steps in
            let export = try await steps.run { try FileExport(of: file, to: path, replaces: replaces) }
            do {
                while try await steps.run({ try export.next() }) { try Task.checkCancellation() }
                try await steps.run { try export.finish() }
            } catch {
                export.cancel()
                throw error
            }
        }
    }

    private static func rpcError(_ error: StorageError, _ path: String) -> RPCError {
        switch error {
        case .notEnoughSpace:
            ErrorCode.notEnoughSpace.error("the disk of \(path) is full; free some space and export again")
        case .resourceChanged(let message): ErrorCode.resourceChanged.error(message)
        case .notFound:
            ErrorCode.invalidOptions.error("the folder of \(path) does not exist; create it", ["parameter": "path"])
        case .invalid(let message): ErrorCode.invalidOptions.error(message, ["parameter": "path"])
        default: ErrorCode.invalidOptions.error("\(path) cannot be written: \(error.message)", ["parameter": "path"])
        }
    }
}
