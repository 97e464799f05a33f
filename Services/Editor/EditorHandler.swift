import Contracts
import Hosting
import JSONValue
import Messaging

/// Dispatches each request to one call.
struct EditorHandler: RequestHandler {
    let edits: EditProcessor
    let state: ServiceState

    func limits(of method: String) -> MethodLimits { EditorRequest.limits(of: method) }

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        switch try EditorRequest(method: request.method, params: request.params) {
        case .begin(let editing): try await edits.begin(editing)
        case .apply(let edit): Reply(try await edits.apply(edit, context))
        case .preview(let preview): try await edits.preview(preview)
        case .revert(let revert): Reply(try await edits.revert(revert, for: context.identity).json)
        case .copy(let copy): Reply(try await edits.copy(copy, context))
        case .compare(let compare): try await edits.compare(compare)
        case .describe(let describe): try await edits.describe(describe)
        case .suggest(let suggest): Reply(try await edits.suggest(suggest).json)
        case .history(let history): Reply(try await edits.history(history).json)
        case .undo(let undo): Reply(try await edits.undo(undo, for: context.identity).json)
        case .discover: Reply(state.document)
        case .health: Reply(await state.health().json)
        case .figures: Reply(await state.counts())
        }
    }
}
