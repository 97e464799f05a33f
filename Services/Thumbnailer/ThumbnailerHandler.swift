import Contracts
import Hosting
import JSONValue
import Messaging

/// One request, one call, one reply.
struct ThumbnailerHandler: RequestHandler {
    let pictures: PictureService
    let state: ThumbnailerState

    @concurrent
    func handle(_ request: IncomingRequest, notifier: Notifier) async throws(RPCError) -> Reply {
        switch try ThumbnailerRequest(method: request.method, params: request.params) {
        case .image(let image): try await pictures.image(image)
        case .sheet(let sheet): try await pictures.sheet(sheet)
        case .discover: Reply(state.document)
        case .health: Reply(await state.health().json)
        case .figures: Reply(.object(await state.figures.all.json()))
        }
    }
}
