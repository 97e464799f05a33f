import Contracts
import Hosting
import JSONValue
import Messaging

/// One request, one call, one reply.
struct EditorHandler: RequestHandler {
    let edits: EditDesk
    let state: EditorState

    @concurrent
    func handle(_ request: IncomingRequest, notifier: Notifier) async throws(RPCError) -> Reply {
        switch try EditorRequest(method: request.method, params: request.params) {
        case .apply(let edit): Reply(try await edits.apply(edit, for: request.identity).json)
        case .preview(let preview): try await edits.preview(preview)
        case .revert(let revert): Reply(try await edits.revert(revert, for: request.identity).json)
        case .discover: Reply(state.document)
        case .health: Reply(await state.health().json)
        case .figures: Reply(.object(await state.figures.all.json()))
        }
    }
}
