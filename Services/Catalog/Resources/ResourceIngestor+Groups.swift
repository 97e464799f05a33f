import Basics
import Hosting
import Messaging
import Metadata
import PhotoModel
import Storage

/// The import of small files in groups: the files of a group share one step on the disk's threads, one query and one
/// job of a worker.
extension ResourceIngestor {
    /// The maximum number of files in a group.
    static let maxGroupFiles = MetadataExtractor.maxGroupFiles
    /// The maximum size of a file in a group, in bytes; larger ones are prepared alone.
    static let maxGroupedFileBytes: Int64 = 4 << 20
    /// The number of bytes after which a step ends. Together with the last file, a step has at most
    /// ``FileHash/stepBytes``.
    private static let groupStepBytes = FileHash.stepBytes - maxGroupedFileBytes

    /// A file of a group.
    private struct GroupFile: Sendable {
        /// The index of its request.
        let request: Int
        let create: ChangeRequest.CreateAsset
        let resource: NewResource
    }

    /// Divides the requests with bytes into those that are prepared together and those that are prepared alone.
    static func divide(_ requests: [ChangeRequest]) -> [[Int]] {
        var groups: [[Int]] = []
        var open: [Int] = []
        for (index, request) in requests.enumerated() where request.hasBytes {
            guard request.isGroupable else {
                groups.append([index])
                continue
            }
            open.append(index)
            guard open.count == maxGroupFiles else { continue }
            groups.append(open)
            open = []
        }
        return open.isEmpty ? groups : groups + [open]
    }

    /// Prepares the requests of a group. An error names the index of its request.
    func prepare(
        group: [Int],
        of requests: [ChangeRequest],
        _ context: RequestContext,
        _ uncommitted: UncommittedResources,
        alwaysReads: Bool
    ) async throws -> [(Int, PreparedChange)] {
        var files: [GroupFile] = []
        for index in group {
            guard case .createAsset(let create) = requests[index], let resource = create.resources.first else {
                continue
            }
            try addingIndex(index) { try check(create.resources) }
            files.append(GroupFile(request: index, create: create, resource: resource))
        }
        let staged = try await stage(files, context, uncommitted)
        let known = alwaysReads ? [] : try await originals(of: zip(files, staged).map { ($0.create, $1) })
        var prepared: [(Int, PreparedChange)] = []
        var unread: [(file: GroupFile, resource: PreparedResource)] = []
        for (file, resource) in zip(files, staged) {
            guard let resource else {
                // The file is too large for a group.
                let change = try await prepare(
                    alone: file.request,
                    of: requests,
                    context,
                    uncommitted,
                    alwaysReads: alwaysReads
                )
                prepared.append((file.request, change))
                continue
            }
            if file.create.ifDuplicate == .useExisting, known.contains(resource.digest) {
                prepared.append((file.request, PreparedChange(requests[file.request], resources: [resource])))
            } else {
                unread.append((file, resource))
            }
        }
        let facts = try await read(unread.map { ($0.file.request, $0.resource, $0.file.create.burst != nil) })
        for (member, facts) in zip(unread, facts) {
            let request = member.file.request
            try addingIndex(request) { try uncommitted.reserve(facts.textBytes) }
            var resources = [member.resource]
            resources[0].facts = facts
            try addingIndex(request) { try ResourceRules.resolve(&resources) }
            prepared.append((request, PreparedChange(requests[request], resources: resources)))
        }
        return prepared
    }

    /// Stages the files; nil for those that are too large.
    private func stage(
        _ files: [GroupFile],
        _ context: RequestContext,
        _ uncommitted: UncommittedResources
    ) async throws -> [PreparedResource?] {
        var staged: [PreparedResource?] = []
        while staged.count < files.count {
            let rest = files[staged.count...]
            staged += try await blockingIO.run(for: WorkSource(of: context)) {
                var bytes: Int64 = 0
                var step: [PreparedResource?] = []
                for file in rest {
                    let resource = try addingIndex(file.request) { try stage(file.resource, context, uncommitted) }
                    step.append(resource)
                    bytes += resource?.size ?? 0
                    if bytes >= Self.groupStepBytes { break }
                }
                return step
            }
        }
        return staged
    }

    /// Stages a file; returns nil if it is too large. Blocks the thread.
    private func stage(
        _ resource: NewResource,
        _ context: RequestContext,
        _ uncommitted: UncommittedResources
    ) throws -> PreparedResource? {
        var name = try resource.originalFilename.map {
            try storable($0, "originalFilename", maxBytes: TextLimit.filename)
        }
        let bytes: Bytes
        let size: Int64
        switch resource.source {
        case .attachment(let number):
            bytes = try attachment(number, context)
            size = Int64(bytes.count)
        case .path(let path):
            let file = try roots.open(path, for: context.identity)
            size = file.size
            name = name ?? Self.name(ofPath: path)
            bytes = size <= Self.maxGroupedFileBytes ? try file.read(offset: 0, count: Int(size)) : []
        case .upload, nil:
            return nil
        }
        guard size <= Self.maxGroupedFileBytes else { return nil }
        try check(bytes.prefix(MetadataReader.beginningBytes), size, resource, resource.path ?? name ?? "the bytes")
        let staged = try resources.stage(bytes: bytes, hidesPresence: context.hidesStoredBytes)
        return recordStaged(resource, staged, name: name, uncommitted)
    }

    /// Returns the digests of the resources that are already the original of an asset.
    private func originals(of files: [(ChangeRequest.CreateAsset, PreparedResource?)]) async throws -> Set<String> {
        let present = files.compactMap { create, resource in
            create.ifDuplicate == .useExisting && resource?.wasPresent == true ? resource?.digest : nil
        }
        guard !present.isEmpty else { return [] }
        return try await store.read { library in
            Set(try present.filter { try library.assets.asset(withOriginal: $0) != nil })
        }
    }

    /// Returns the metadata of resources of several requests, in their order.
    private func read(
        _ resources: [(request: Int, resource: PreparedResource, isBurstFrame: Bool)]
    ) async throws -> [ExtractedMetadata] {
        let files = try resources.map { request, resource, isBurstFrame in
            guard let digest = ResourceDigest(resource.digest) else { throw ResourceError.badDigest }
            return MetadataExtractor.File(digest: digest, name: resource.name, isBurstFrame: isBurstFrame)
        }
        do throws(MetadataExtractor.GroupFailure) {
            return try await extractor.facts(of: files)
        } catch {
            throw CatalogErrorMapping.rpcError(error.cause).about(request: resources[error.index].request)
        }
    }

    /// Returns the result of a body, or throws its error with the index of the request.
    private func addingIndex<Value>(_ request: Int, _ body: () throws -> Value) throws -> Value {
        do {
            return try body()
        } catch {
            throw rpcError(error).about(request: request)
        }
    }
}

extension ChangeRequest {
    /// True if the request can be prepared in a group: a new asset of one copied file without a sidecar or an edit.
    fileprivate var isGroupable: Bool {
        guard case .createAsset(let create) = self, create.resources.count == 1, create.sidecar == nil,
            create.edit == nil,
            let resource = create.resources.first
        else { return false }
        guard !resource.isReferenced, !resource.isMoved, !resource.verifies else { return false }
        switch resource.source {
        case .path, .attachment: return true
        case .upload, nil: return false
        }
    }
}
