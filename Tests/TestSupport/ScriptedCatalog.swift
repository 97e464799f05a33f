public import Basics
public import Contracts
public import JSONValue
public import Messaging
public import PhotoModel
import Synchronization

/// A catalog for tests of the services that use it. It stores assets in memory and behaves like the real one, except
/// for errors that a test injects.
///
/// It implements fetches by identifiers, edits and reverts only.
public final class ScriptedCatalog: RequestHandler {
    /// Stores bytes and returns their resource.
    public typealias StoreBytes = @Sendable (Bytes, ResourceType) throws -> AssetResource

    private struct State {
        var assets: [ObjectID: Asset] = [:]
        var sequence: Int64 = 0
        var outcomes: [String: (digest: String, reply: JSON)] = [:]
        var uploads: [String: Bytes] = [:]
        var counts: [String: Int] = [:]
        var performed: [PerformChanges] = []
        var failures: [String: [RPCError]] = [:]
        var isHealthy = true
        var quarantined: [QuarantinedResource] = []
        var beforeResponse: (@Sendable (ScriptedCatalog, String) async -> Void)?
        var nextID: UInt64 = 0
    }

    private let state = Mutex(State())
    private let storeBytes: StoreBytes
    /// The library's history id.
    public let library = "0123456789abcdef0123456789abcdef"

    /// Creates an empty catalog.
    public init(storeBytes: @escaping StoreBytes) {
        self.storeBytes = storeBytes
    }

    // MARK: Control by tests

    /// Adds an asset with an original of these bytes.
    public func add(_ bytes: Bytes, _ change: (inout Asset) -> Void = { _ in }) throws -> Asset {
        let resource = try storeBytes(bytes, .photo)
        return state.withLock { state in
            state.nextID += 1
            var random = SeededRandom(seed: state.nextID)
            state.sequence += 1
            let revision = Revision(state.sequence)
            var asset = Asset(
                id: ObjectID(.asset, milliseconds: Int64(state.nextID), using: &random),
                revision: revision,
                contentRevision: revision
            )
            asset.mediaType = .image
            asset.resources = [resource]
            asset.originalFilename = "picture \(state.nextID).jpg"
            change(&asset)
            state.assets[asset.id] = asset
            return asset
        }
    }

    /// Changes an asset, as another program would. With `content` its content revision changes too.
    public func change(_ id: ObjectID, content: Bool, _ change: (inout Asset) -> Void) {
        state.withLock { state in
            guard var asset = state.assets[id] else { return }
            change(&asset)
            state.sequence += 1
            asset.revision = Revision(state.sequence)
            if content { asset.contentRevision = asset.revision }
            state.assets[id] = asset
        }
    }

    /// Deletes an asset.
    public func remove(_ id: ObjectID) {
        state.withLock { state in
            state.assets[id] = nil
            state.sequence += 1
        }
    }

    /// Returns the current state of an asset.
    public func asset(_ id: ObjectID) -> Asset? { state.withLock { $0.assets[id] } }

    /// The transactions received, including recalls.
    public var performed: [PerformChanges] { state.withLock { $0.performed } }

    /// The sequence of the last transaction.
    public var sequence: Int64 { state.withLock { $0.sequence } }

    /// Returns the number of requests of a method.
    public func count(_ method: String) -> Int { state.withLock { $0.counts[method] ?? 0 } }

    /// Makes the next requests of a method fail, one for each error.
    public func fail(_ method: String, _ errors: RPCError...) {
        state.withLock { $0.failures[method, default: []] += errors }
    }

    /// Quarantines bytes, as if they had crashed workers.
    public func quarantine(_ digest: String) {
        let entry = QuarantinedResource(
            digest: digest,
            name: ErrorCode.workerCrashed.rawValue,
            reason: "set by a test",
            service: "thumbnailer",
            failures: 2,
            date: 0
        )
        state.withLock { $0.quarantined.append(entry) }
    }

    /// Sets whether `health` reports a healthy catalog.
    public func setHealthy(_ isHealthy: Bool) { state.withLock { $0.isHealthy = isHealthy } }

    /// Sets a function that is called with the method's name before each response.
    public func callBeforeResponse(_ body: (@Sendable (ScriptedCatalog, String) async -> Void)?) {
        state.withLock { $0.beforeResponse = body }
    }

    // MARK: Requests

    /// Responds to a request, or throws the next error injected for its method.
    @concurrent
    public func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let (beforeResponse, failure) = state.withLock { state in
            state.counts[request.method, default: 0] += 1
            let failure = state.failures[request.method]?.first
            if failure != nil { state.failures[request.method]?.removeFirst() }
            return (state.beforeResponse, failure)
        }
        await beforeResponse?(self, request.method)
        if let failure { throw failure }
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .fetchAssets(let fetch): return Reply(try page(fetch).json)
        case .perform(let changes): return Reply(try perform(changes, context))
        case .beginUpload:
            return state.withLock { state in
                state.nextID += 1
                state.uploads["u\(state.nextID)"] = []
                return Reply(BeginUpload.Result(upload: "u\(state.nextID)").json)
            }
        case .appendUpload(let append):
            return state.withLock { state in
                state.uploads[append.upload]?.append(contentsOf: context.attachments.first ?? [])
                return Reply(AppendUpload.Result(size: Int64(state.uploads[append.upload]?.count ?? 0)).json)
            }
        case .finishUpload(let finish):
            let size = state.withLock { Int64($0.uploads[finish.upload]?.count ?? 0) }
            return Reply(FinishUpload.Result(upload: finish.upload, digest: finish.digest ?? "", size: size).json)
        case .health:
            return state.withLock { state in
                Reply(
                    Health.Result(
                        service: "catalog",
                        version: "test",
                        isHealthy: state.isHealthy,
                        problems: state.isHealthy ? [] : ["set by a test"],
                        sequence: state.sequence
                    ).json
                )
            }
        default: throw ErrorCode.methodNotFound.error("the scripted catalog has no \(request.method)")
        }
    }

    private func page(_ fetch: FetchAssets) throws(RPCError) -> FetchAssets.Result {
        let (found, missing, sequence) = state.withLock { state in
            let ids = fetch.fetch.ids ?? []
            return (ids.compactMap { state.assets[$0] }, ids.filter { state.assets[$0] == nil }, state.sequence)
        }
        let isInTrash = fetch.fetch.inTrash == true
        let all = found.filter { ($0.trashedDate != nil) == isInTrash }
        let assets = Array(all.dropFirst(fetch.from).prefix(fetch.count))
        let digests = Set(assets.flatMap { $0.resources.map(\.digest) })
        let quarantined = state.withLock { $0.quarantined.filter { digests.contains($0.digest) } }
        if let token = fetch.atLeast, token.sequence > sequence {
            throw ErrorCode.behind.error("at \(sequence), not yet at \(token.sequence)")
        }
        return FetchAssets.Result(
            token: ChangeToken(library: library, sequence: sequence),
            count: all.count,
            assets: assets,
            missing: missing,
            quarantined: quarantined
        )
    }

    private func perform(_ changes: PerformChanges, _ context: RequestContext) throws(RPCError) -> JSON {
        let key = "\(changes.onBehalfOf ?? context.identity)\n\(changes.client)\n\(changes.transaction ?? "")"
        let digest = changes.requestDigest ?? changes.json.text
        let recorded = state.withLock { state in
            state.performed.append(changes)
            return state.outcomes[key]
        }
        if changes.transaction != nil, let recorded {
            guard recorded.digest == digest else { throw ErrorCode.idReused.error("used for other content") }
            return recorded.reply
        }
        guard !changes.recalls else { throw ErrorCode.identifierNotFound.error("no such transaction was committed") }
        return try commit(changes, context, key: key, digest: digest)
    }

    private func commit(
        _ changes: PerformChanges,
        _ context: RequestContext,
        key: String,
        digest: String
    ) throws(RPCError) -> JSON {
        var resources: [ResourceType: AssetResource] = [:]
        for case .editAsset(let edit) in changes.requests {
            resources[.fullSizePhoto] = try storedResource(edit.render.source, .fullSizePhoto, context)
            resources[.adjustmentData] = try storedResource(
                .attachment(edit.adjustmentData.attachment),
                .adjustmentData,
                context
            )
        }
        let outcome = state.withLock { state -> Result<JSON, RPCError> in
            var assets = state.assets
            for change in changes.requests {
                do throws(RPCError) {
                    try Self.apply(change, resources, next: state.sequence + 1, to: &assets)
                } catch {
                    return .failure(error)
                }
            }
            let isChanged = assets != state.assets
            if isChanged { state.sequence += 1 }
            state.assets = assets
            let reply = PerformChanges.Result(
                token: ChangeToken(library: library, sequence: state.sequence),
                isChanged: isChanged
            ).json
            if isChanged, changes.transaction != nil { state.outcomes[key] = (digest, reply) }
            return .success(reply)
        }
        return try outcome.get()
    }

    private static func apply(
        _ change: ChangeRequest,
        _ resources: [ResourceType: AssetResource],
        next: Int64,
        to assets: inout [ObjectID: Asset]
    ) throws(RPCError) {
        let (id, expected): (ObjectID, Revision?) =
            switch change {
            case .editAsset(let edit): (edit.id, edit.inputToken?.contentRevision ?? edit.ifContentRevision)
            case .revertAsset(let revert): (revert.id, revert.ifContentRevision)
            case .updateAsset(let update):
                if case .id(let id) = update.id { (id, nil) } else { (.none, nil) }
            default: throw ErrorCode.changeNotSupported.error("the scripted catalog has no \(change.name)")
            }
        guard var asset = assets[id] else { throw ErrorCode.identifierNotFound.error("there is no asset \(id)") }
        guard expected == nil || expected == asset.contentRevision || asset.contentRevision.sequence == next else {
            throw ErrorCode.conflict.error(
                "it is at \(asset.contentRevision)",
                ["contentRevision": .string(asset.contentRevision.description)]
            )
        }
        switch change {
        case .updateAsset(let update):
            // For an update, only the precondition is checked.
            guard update.ifRevision == nil || update.ifRevision == asset.revision else {
                throw ErrorCode.conflict.error(
                    "it is at \(asset.revision)",
                    ["revision": .string(asset.revision.description)]
                )
            }
            return
        case .editAsset(let edit):
            let isOther =
                asset.hasAdjustments
                && asset.adjustmentFormatIdentifier != edit.adjustmentData.formatIdentifier
            if edit.inputToken?.base == .original { asset.resources.removeAll { $0.type == .adjustmentBasePhoto } }
            if edit.inputToken.map({ $0.base == .current }) ?? isOther, var base = asset.resource(.fullSizePhoto) {
                base.type = .adjustmentBasePhoto
                asset.resources.removeAll { $0.type == .adjustmentBasePhoto }
                asset.resources.append(base)
            }
            asset.resources.removeAll { $0.type == .fullSizePhoto || $0.type == .adjustmentData }
            asset.resources += [resources[.fullSizePhoto], resources[.adjustmentData]].compactMap { $0 }
            asset.adjustmentFormatIdentifier = edit.adjustmentData.formatIdentifier
            asset.adjustmentFormatVersion = edit.adjustmentData.formatVersion
        default:
            guard asset.hasAdjustments else { return }
            asset.resources.removeAll { $0.type != .photo }
            asset.adjustmentFormatIdentifier = nil
            asset.adjustmentFormatVersion = nil
        }
        asset.revision = Revision(next)
        asset.contentRevision = Revision(next)
        assets[id] = asset
    }

    private func storedResource(
        _ source: ResourceSource?,
        _ type: ResourceType,
        _ context: RequestContext
    ) throws(RPCError) -> AssetResource {
        let bytes: Bytes? =
            switch source {
            case .attachment(let index): context.attachments.indices.contains(index) ? context.attachments[index] : nil
            case .upload(let name): state.withLock { $0.uploads[name] }
            default: nil
            }
        guard let bytes, let resource = try? storeBytes(bytes, type) else {
            throw ErrorCode.invalidResource.error("the bytes of \(type.rawValue) are missing")
        }
        return resource
    }
}
