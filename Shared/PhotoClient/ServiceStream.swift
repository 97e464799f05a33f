public import Basics
public import Contracts
public import JSONValue
import Messaging

/// An event of a streaming request: notifications, then the response.
public enum ServiceEvent<R: Request>: Sendable {
    /// A notification about the request.
    case notification(method: String, params: JSON, attachments: [Bytes])
    /// The response; the last element.
    case response(ServiceResponse<R.Result>)
}

/// A streaming request. Each iteration sends a request of its own; leaving the loop cancels it.
public struct ServiceStream<R: Request>: AsyncSequence, Sendable {
    public typealias Element = ServiceEvent<R>
    public typealias Failure = RPCError

    fileprivate enum Source {
        case stream(RequestStream)
        /// The instance of the service is chosen when the first element is requested, and another one if that one
        /// cannot answer.
        case choice(@Sendable (_ number: Int) async -> RequestStream?)
    }

    private let source: Source

    init(_ stream: RequestStream) { source = .stream(stream) }

    /// - Parameter choose: returns the stream of an attempt, 0 for the first one; nil if there is no further one
    init(choosing choose: @escaping @Sendable (_ number: Int) async -> RequestStream?) { source = .choice(choose) }

    public func makeAsyncIterator() -> Iterator { Iterator(source) }

    public struct Iterator: AsyncIteratorProtocol {
        private var inner: RequestStream.Iterator?
        private let choose: (@Sendable (_ number: Int) async -> RequestStream?)?
        private var attempts = 0
        private var hasBegun = false
        private var failure: RPCError?

        fileprivate init(_ source: Source) {
            switch source {
            case .stream(let stream): (inner, choose) = (stream.makeAsyncIterator(), nil)
            case .choice(let choose): (inner, self.choose) = (nil, choose)
            }
        }

        /// Returns the next notification or the response; nil after the response.
        ///
        /// - Throws: the service's error, or `connection_lost`
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> ServiceEvent<R>? {
            switch try await nextElement(isolation: actor) {
            case .notification(let method, let params, let attachments):
                return .notification(method: method, params: params, attachments: attachments)
            case .reply(let reply):
                let result = try R.result(of: reply.result)
                return .response(ServiceResponse(result: result, attachments: reply.attachments))
            case nil: return nil
            }
        }

        private mutating func nextElement(
            isolation actor: isolated (any Actor)?
        ) async throws(RPCError) -> StreamElement? {
            guard !hasBegun, let choose else { return try await inner?.next(isolation: actor) }
            while let stream = await choose(attempts) {
                attempts += 1
                inner = stream.makeAsyncIterator()
                do throws(RPCError) {
                    let element = try await inner?.next(isolation: actor)
                    hasBegun = true
                    return element
                } catch {
                    failure = failure ?? error
                    guard error.mayBeDifferentElsewhere else { break }
                }
            }
            hasBegun = true
            throw failure ?? ErrorCode.unavailable.error("no instance of the service can be asked")
        }

        public mutating func next() async throws(RPCError) -> ServiceEvent<R>? {
            try await next(isolation: #isolation)
        }
    }
}
