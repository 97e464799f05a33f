import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel

/// Dispatches each request to one call.
struct EditorHandler: RequestHandler {
    let edits: EditProcessor
    let state: ServiceState

    func limits(of method: String) -> MethodLimits { EditorRequest.limits(of: method) }

    @concurrent
    func handle(_ incoming: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let request = try EditorRequest(method: incoming.method, params: incoming.params)
        if let cached = context.cachedPermission, !Permission(byte: cached.value).seesEverything {
            // A limited view is checked first, so that an asset that is not on the list is like one that does not
            // exist. The cached permission is not reliable while the editor does not follow the grants.
            if request.hasFetch, try await edits.isLimited(context.identity) {
                throw RPCError.fetchInLimitedView(context.identity)
            }
            if let asset = try await edits.unseen(context.identity, request.assets) {
                throw RPCError.assetNotFound(asset)
            }
        }
        return switch request {
        case .begin(let editing): try await edits.begin(editing, context)
        case .apply(let edit): Reply(try await edits.apply(edit, context))
        case .livePhoto(let edit): Reply(try await edits.saveLivePhoto(edit, context))
        case .preview(let preview): try await edits.preview(preview, context)
        case .revert(let revert): Reply(try await edits.revert(revert, for: context.identity).json)
        case .copy(let copy): Reply(try await edits.copy(copy, context))
        case .compare(let compare): try await edits.compare(compare, context)
        case .describe(let describe): try await edits.describe(describe, context)
        case .suggest(let suggest): Reply(try await edits.suggest(suggest, context).json)
        case .history(let history): Reply(try await edits.history(history).json)
        case .undo(let undo): Reply(try await edits.undo(undo, context).json)
        case .discover: Reply(state.document)
        case .health: Reply(await state.health().json)
        case .figures: Reply(await state.counts())
        }
    }
}

extension EditorRequest {
    /// The assets that a request names.
    fileprivate var assets: [ObjectID] {
        switch self {
        case .begin(let editing): [editing.asset]
        case .apply(let edit): (edit.asset.map { [$0] } ?? []) + edit.assets
        case .livePhoto(let edit): [edit.asset]
        case .preview(let preview): [preview.asset]
        case .revert(let revert): [revert.asset]
        case .copy(let copy): [copy.from] + copy.to
        case .compare(let compare): [compare.asset]
        case .describe(let describe): describe.asset.map { [$0] } ?? []
        case .suggest(let suggest): [suggest.asset]
        case .history(let history): [history.asset]
        case .undo(let undo): [undo.asset]
        case .discover, .health, .figures: []
        }
    }

    /// True if the request names assets by a fetch.
    fileprivate var hasFetch: Bool {
        switch self {
        case .apply(let edit): edit.fetch != nil
        case .copy(let copy): copy.fetch != nil
        default: false
        }
    }
}
