import Basics
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import Metadata
import PhotoModel
import Storage

/// Imports the bytes of a transaction into the resource store, before the transaction is committed:
/// ``makeDurable(_:)`` syncs them to disk before the database refers to them. Bytes that no transaction refers to in
/// the end are removed.
struct ResourceIngestor: Sendable {
    let resources: ResourceStore
    let syncs: ResourceSyncQueue
    let blockingIO: BlockingIOExecutor
    let uploads: UploadRegistry
    let roots: ImportRoots
    let extractor: MetadataExtractor
    let store: LibraryStore
    /// Nil without remote storage.
    let throttle: ImportThrottle?
    /// The maximum size of a file in bytes.
    let maxBytes: Int64
    /// Receives a failure of the disk, and returns the error of its cause if that concerns the library as a whole.
    let onDiskFailure: @Sendable (StorageError) -> RPCError?
    let logger: Logger
    /// The number of requests, or groups of them, of one transaction that are prepared concurrently.
    let concurrency = 4
    let metadataMemory = MetadataMemory()

    /// Prepares all requests of a transaction, some of which have bytes. An error names the index of its request.
    ///
    /// - Parameters:
    ///   - uncommitted: collects everything that is stored for them
    ///   - alwaysReads: true to extract the metadata also of bytes that an asset already has
    func prepare(
        _ requests: [ChangeRequest],
        _ context: RequestContext,
        _ uncommitted: UncommittedResources,
        alwaysReads: Bool
    ) async throws -> [PreparedChange] {
        var prepared = requests.map { PreparedChange($0) }
        uncommitted.countMetadata(in: metadataMemory.reservation(of: context.identity))
        let latest = ContinuousClock.now + ImportThrottle.maxDelay
        let groups = Self.divide(requests)
        try await withThrowingTaskGroup(of: [(Int, PreparedChange)].self) { group in
            var next = groups.startIndex
            var running = 0
            while true {
                while running < concurrency, next < groups.endIndex {
                    let indices = groups[next]
                    next += 1
                    running += 1
                    group.addTask {
                        // No local file is removed during a backup, so a delay would have no effect.
                        if !resources.areRemovalsSuspended { await throttle?.wait(until: latest) }
                        guard indices.count == 1 else {
                            return try await prepare(
                                group: indices,
                                of: requests,
                                context,
                                uncommitted,
                                alwaysReads: alwaysReads
                            )
                        }
                        let change = try await prepare(
                            alone: indices[0],
                            of: requests,
                            context,
                            uncommitted,
                            alwaysReads: alwaysReads
                        )
                        return [(indices[0], change)]
                    }
                }
                guard let changes = try await group.next() else { break }
                for (index, change) in changes { prepared[index] = change }
                running -= 1
            }
        }
        return prepared
    }

    /// Makes the bytes durable that were stored for a transaction, together with those of other transactions.
    func makeDurable(_ uncommitted: UncommittedResources) async throws {
        try await syncs.makeDurable(uncommitted.staged())
    }

    /// Prepares one request. An error names its index.
    func prepare(
        alone index: Int,
        of requests: [ChangeRequest],
        _ context: RequestContext,
        _ uncommitted: UncommittedResources,
        alwaysReads: Bool
    ) async throws -> PreparedChange {
        do {
            return try await prepare(requests[index], context, uncommitted, alwaysReads)
        } catch {
            throw rpcError(error).about(request: index)
        }
    }

    /// Returns the error to send to the client.
    func rpcError(_ error: any Error) -> RPCError {
        (error as? StorageError).flatMap { onDiskFailure($0) } ?? CatalogErrorMapping.rpcError(error)
    }

    private func prepare(
        _ request: ChangeRequest,
        _ context: RequestContext,
        _ uncommitted: UncommittedResources,
        _ alwaysReads: Bool
    ) async throws -> PreparedChange {
        switch request {
        case .createAsset(let create):
            try check(create.resources)
            var resources: [PreparedResource] = []
            for resource in create.resources {
                resources.append(try await ingest(resource, context, uncommitted))
            }
            if !alwaysReads, create.ifDuplicate == .useExisting,
                let original = resources.first(where: \.type.isOriginal), original.wasPresent
            {
                let digest = original.digest
                let isKnown = try await store.read { try $0.assets.asset(withOriginal: digest) != nil }
                if isKnown { return PreparedChange(request, resources: resources) }
            }
            let isBurstFrame = create.burst != nil
            for index in resources.indices {
                try await read(&resources[index], isBurstFrame: isBurstFrame, uncommitted)
            }
            try ResourceRules.resolve(&resources)
            try addFactsOfRawFile(to: &resources, uncommitted)
            if let sidecar = create.sidecar, let index = resources.firstIndex(where: \.type.isOriginal) {
                let facts = try await read(sidecar: sidecar, beside: resources[index].facts, context)
                let (digest, before) = (resources[index].digest, resources[index].facts?.textBytes ?? 0)
                resources[index].facts?.merge(facts, of: digest)
                let added = (resources[index].facts?.textBytes ?? 0) - before
                try reserve(max(0, added), ofSidecarIn: uncommitted)
            }
            var change = PreparedChange(request, resources: resources)
            if let edit = create.edit {
                change.render = try await ingest(render: edit.render, context, uncommitted)
                change.adjustment = try await ingest(edit.adjustmentData, context, uncommitted)
            }
            return change
        case .editAsset(let edit):
            var resources = [try await ingest(render: edit.render, context, uncommitted)]
            if let pairedVideo = edit.pairedVideo {
                resources.append(try await ingest(render: pairedVideo, context, uncommitted, isPaired: true))
            }
            return PreparedChange(
                request,
                resources: resources,
                adjustment: try await ingest(edit.adjustmentData, context, uncommitted)
            )
        default: return PreparedChange(request)
        }
    }

    private func ingest(
        render resource: NewResource,
        _ context: RequestContext,
        _ uncommitted: UncommittedResources,
        isPaired: Bool = false
    ) async throws -> PreparedResource {
        var render = try await ingest(resource, context, uncommitted)
        try await read(&render, uncommitted)
        let video: ResourceType = isPaired ? .fullSizePairedVideo : .fullSizeVideo
        render.type = render.facts?.mediaType == .video ? video : .fullSizePhoto
        try Self.check(render)
        guard render.facts?.orientation == 1 else {
            throw ResourceError.renderNotUpright(file: render.name)
        }
        return render
    }

    /// Checks that a render has one of the types that `editing.begin` lists (T-23).
    private static func check(_ render: PreparedResource) throws {
        let type = render.facts?.contentType ?? ""
        let supported = RenderType.supported(for: render.facts?.mediaType ?? .image)
        guard supported.contains(type) else {
            throw ResourceError.renderNotSupported(type: type, supported: supported)
        }
    }

    func check(_ resources: [NewResource]) throws {
        try ResourceRules.check(resources.map(\.type))
        guard resources.allSatisfy({ !$0.isMoved || ($0.path != nil && !$0.isReferenced) }) else {
            throw ResourceError.moveWithoutCopy
        }
        for resource in resources {
            guard ResourceRules.accepted.contains(resource.type) else {
                throw ResourceError.typeNotAccepted(resource.type)
            }
        }
    }

    /// Removes the source files that a committed transaction moved in, after the stored bytes were read back from disk
    /// and verified. A file that has been changed or replaced since stays, and so does one whose bytes no asset has.
    func removeMoved(_ requests: [ChangeRequest], _ prepared: [PreparedChange], _ context: RequestContext) async {
        for index in requests.indices {
            guard case .createAsset(let create) = requests[index] else { continue }
            for (resource, uncommitted) in zip(create.resources, prepared[index].resources) {
                guard resource.isMoved, let path = resource.path, let identity = uncommitted.identity,
                    let digest = ResourceDigest(uncommitted.digest)
                else { continue }
                do {
                    try await removeMoved(path, identity, digest, context)
                } catch {
                    // If the file cannot be removed, its bytes exist twice; none are lost.
                    logger.error(
                        "the source of a moved file could not be removed",
                        metadata: ["file": "\(path)", "digest": "\(digest)", "error": "\(error)"]
                    )
                }
            }
        }
    }

    private func removeMoved(
        _ path: String,
        _ identity: FileIdentity,
        _ digest: ResourceDigest,
        _ context: RequestContext
    ) async throws {
        // If no asset has the bytes, because an existing asset could not use them, the collector removes the stored
        // copy, and the source is the only one.
        guard try await store.read({ try $0.references.contains(digest) }) else { return }
        let (resources, roots, source) = (resources, roots, WorkSource(of: context))
        let open = { @Sendable in try resources.open(digest) }
        do {
            try await blockingIO.verify(try await blockingIO.run(for: source, open), fromDisk: true, for: source)
        } catch is StorageError {
            // The disk has lost the written bytes: store them again while the source exists.
            let file = try roots.open(path, for: context.identity)
            _ = try await blockingIO.copy(file, into: resources, limit: maxBytes, verifies: true, for: source)
            try await blockingIO.verify(try await blockingIO.run(for: source, open), fromDisk: true, for: source)
        }
        try await blockingIO.run(for: source) { try roots.remove(path, identity) }
    }

    // MARK: Bytes

    private func ingest(
        _ resource: NewResource,
        _ context: RequestContext,
        _ uncommitted: UncommittedResources
    ) async throws -> PreparedResource {
        let (resources, source) = (resources, WorkSource(of: context))
        let staged: StagedResource
        var identity: FileIdentity?
        guard !resource.isReferenced || resource.path != nil else {
            throw ResourceError.referenceWithoutPath
        }
        // The source of a move is removed, so the stored bytes must be verified first. Otherwise they are not compared
        // for a client that must not find out which bytes are stored, because the time would reveal it: the bytes of
        // the client replace them.
        let compares = resource.verifies && !context.hidesStoredBytes || resource.isMoved
        var name = try resource.originalFilename.map {
            try storable($0, "originalFilename", maxBytes: TextLimit.filename)
        }
        switch resource.source {
        case .attachment(let number):
            let bytes = try attachment(number, context)
            try check(bytes.prefix(MetadataReader.beginningBytes), Int64(bytes.count), resource, name ?? "the bytes")
            staged = try await blockingIO.run(for: source) {
                try resources.stage(
                    bytes: bytes,
                    verifies: resource.verifies,
                    hidesPresence: context.hidesStoredBytes
                )
            }
        case .upload(let upload):
            staged = StagedResource(durable: try await uploads.finished(upload, identity: context.identity))
        case .path(let named):
            let isReferenced = resource.isReferenced
            if isReferenced { try roots.requireConfigured() }
            let file = try roots.open(named, for: context.identity)
            if resource.isMoved { identity = try roots.requireMovable(file, named, for: context.identity) }
            name = name ?? Self.name(ofPath: named)
            let check = { @Sendable [self] (beginning: [UInt8]) in
                try self.check(beginning[...], file.size, resource, named)
            }
            do {
                if isReferenced {
                    try await blockingIO.run(for: source) {
                        try check(try file.read(offset: 0, count: MetadataReader.beginningBytes))
                    }
                    staged = StagedResource(
                        durable: try await blockingIO.refer(
                            to: file,
                            at: named,
                            in: resources,
                            limit: maxBytes,
                            verifies: compares,
                            for: source
                        )
                    )
                } else {
                    staged = try await blockingIO.stage(
                        file,
                        into: resources,
                        limit: maxBytes,
                        verifies: compares,
                        for: source,
                        beginning: MetadataReader.beginningBytes,
                        check: check
                    )
                }
            } catch StorageError.tooLarge(let reason) {
                throw ResourceError.unreadable(file: named, reason: reason)
            }
        case nil:
            throw ResourceError.noSource
        }
        return recordStaged(resource, staged, name: name, identity: identity, uncommitted)
    }

    /// Returns the file name in a path, as it is stored.
    static func name(ofPath path: String) -> String? {
        ExtractedMetadata.text(path.split(separator: "/").last.map(String.init), 1024)
    }

    /// Records the staged bytes of a resource as uncommitted, and returns them as a prepared resource.
    func recordStaged(
        _ resource: NewResource,
        _ staged: StagedResource,
        name: String?,
        identity: FileIdentity? = nil,
        _ uncommitted: UncommittedResources
    ) -> PreparedResource {
        uncommitted.add(staged, upload: resource.upload)
        if !staged.stored.wasPresent { throttle?.noteStored(staged.stored.size) }
        return PreparedResource(
            type: resource.type,
            digest: staged.stored.digest.text,
            size: staged.stored.size,
            wasPresent: staged.stored.wasPresent,
            originalFilename: name,
            path: resource.path,
            identity: identity
        )
    }

    /// Checks the size and the first bytes, so that a file that is not accepted is refused before it is copied.
    func check(
        _ beginning: ArraySlice<UInt8>,
        _ size: Int64,
        _ resource: NewResource,
        _ name: String
    ) throws(ResourceError) {
        func unreadable(_ reason: String) -> ResourceError {
            .unreadable(file: name, reason: reason)
        }
        let fileExtension =
            resource.type == .alternatePhoto ? FileGrouping.parts(resource.path ?? name).fileExtension : nil
        let isVideo: Bool
        do throws(MetadataError) {
            isVideo = try MetadataReader.isVideo(Array(beginning), rawFileExtension: fileExtension)
        } catch {
            throw unreadable(error.message)
        }
        let limit = isVideo ? maxBytes : min(maxBytes, Int64(MetadataExtractor.maxBytes))
        guard size <= limit else { throw unreadable("it has \(size) bytes, the limit is \(limit)") }
    }

    private func ingest(
        _ data: AdjustmentData,
        _ context: RequestContext,
        _ uncommitted: UncommittedResources
    ) async throws -> PreparedResource {
        let bytes = try attachment(data.attachment, context)
        guard bytes.count <= AdjustmentData.maxBytes else {
            throw ResourceError.adjustmentDataTooLarge(bytes: bytes.count, limit: AdjustmentData.maxBytes)
        }
        let resources = resources
        let staged = try await blockingIO.run(for: WorkSource(of: context)) {
            try resources.stage(bytes: bytes, hidesPresence: context.hidesStoredBytes)
        }
        uncommitted.add(staged)
        return PreparedResource(type: .adjustmentData, digest: staged.stored.digest.text, size: staged.stored.size)
    }

    func attachment(_ number: Int, _ context: RequestContext) throws -> Bytes {
        guard context.attachments.indices.contains(number) else {
            throw ResourceError.noAttachment(number, count: context.attachments.count)
        }
        return context.attachments[number]
    }

    private func read(
        _ resource: inout PreparedResource,
        isBurstFrame: Bool = false,
        _ uncommitted: UncommittedResources
    ) async throws {
        guard let digest = ResourceDigest(resource.digest) else { throw ResourceError.badDigest }
        let facts = try await extractor.facts(
            of: digest,
            name: resource.name,
            type: resource.type,
            isBurstFrame: isBurstFrame && resource.type.isOriginal
        )
        try uncommitted.reserve(facts.textBytes)
        resource.facts = facts
    }
}

extension RequestContext {
    /// True if the client must not find out whether the library has bytes that it sends.
    var hidesStoredBytes: Bool { cachedPermission.map { !Permission(byte: $0.value).seesEverything } ?? false }
}

extension PreparedResource {
    /// The name of the resource in error messages.
    var name: String { path ?? originalFilename ?? "the \(type.rawValue)" }
}
