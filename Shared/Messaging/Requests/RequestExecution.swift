import JSONValue

/// Runs one request's handler, on Swift's concurrent executor or on that of the handler, and posts its response.
struct RequestExecution: Sendable {
    let request: OpenRequest
    let handler: any RequestHandler
    let outbox: ServerOutbox

    /// Returns when the handler has returned, which may be long after the server answered the request itself.
    @concurrent
    func run() async {
        let answer = await answer()
        request.signal.cancel(.finished)
        outbox.post(answer)
    }

    private func answer() async -> ServerEvent {
        let id = request.incoming.id
        do throws(RPCError) {
            var context = request.context
            context.notifier = Notifier(request, outbox: outbox)
            let reply = try await handler.handle(request.incoming, context)
            let frames = [reply.frame(id: id)] + reply.attachments
            if var violation = outbox.limits.violation(of: frames) {
                violation.message += "; request less at once"
                throw violation
            }
            switch await request.reserveBytes(frames.reduce(0) { $0 + $1.count }) {
            case .success(let reservation):
                return .answer(
                    request,
                    OutgoingMessage(request.prefix + frames, reservation: reservation),
                    failure: nil
                )
            case .failure(let refusal) where refusal.outcome == .refused:
                throw refusal.error("read the replies before sending more requests")
            case .failure: throw .cancelled("the request was cancelled")
            }
        } catch {
            var error = error
            if request.signal.ending == .cancelled { error = .cancelled("the request was cancelled") }
            var frame = EnvelopeWriter.error(id: id, error)
            if frame.count > outbox.limits.maxMessageBytes {
                error.data = [:]
                error.message = String(error.message.prefix(1000))
                frame = EnvelopeWriter.error(id: id, error)
            }
            let message = OutgoingMessage(
                request.prefix + [frame],
                reservation: request.reserveBytesWithoutWaiting(frame.count)
            )
            return .answer(request, message, failure: error.name)
        }
    }
}
