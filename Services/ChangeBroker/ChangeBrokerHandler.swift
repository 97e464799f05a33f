import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoModel

/// Handles the change-broker's requests.
struct ChangeBrokerHandler: RequestHandler {
    let history: ChangeHistory
    let configuration: ChangeBrokerConfiguration
    let state: ServiceState
    let clock: MonotonicClock
    /// Decodes the records that observations need.
    let decoder = RecordDecoder("observations")

    private let detailWork = FairSemaphore<WorkSource>(permits: 4, permitsPerSource: 1)

    private var feed: RecordFeed { history.feed }
    private var observations: ObservationService {
        ObservationService(
            history: history,
            configuration: configuration,
            decoder: decoder,
            detailWork: detailWork,
            clock: clock
        )
    }

    func limits(of method: String) -> MethodLimits { ChangeBrokerRequest.limits(of: method) }

    func connectionEnded(_ connection: ConnectionID) {
        let feed = feed
        Task { await feed.connectionEnded(connection) }
    }

    @concurrent
    func handle(_ incoming: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        let request = try ChangeBrokerRequest(method: incoming.method, params: incoming.params)
        if request.needsContact {
            let time = min(context.microsecondsToAnswer(at: clock.nowMicroseconds()), 5_000_000)
            await feed.waitForContact(atMost: .microseconds(time))
        }
        return switch request {
        case .since(let request): Reply(encoded: try await since(request, context).encoded)
        case .follow(let request): Reply(try await follow(request, context).json)
        case .head: Reply(try await head().json)
        case .observe(let request): Reply(try await observations.observe(request, context).json)
        case .unobserve(let request): Reply(try await observations.unobserve(request, context).json)
        case .details(let request): Reply(try await observations.details(request, context).json)
        case .discover: Reply(state.document)
        case .health: Reply(await state.health().json)
        case .figures: Reply(await state.counts())
        }
    }

    private func since(_ request: FeedSince, _ context: RequestContext) async throws(RPCError) -> EncodedChangePage {
        let remaining = context.microsecondsToAnswer(at: clock.nowMicroseconds())
        let deadline = Duration.microseconds(min(30_000_000, max(1000, remaining)))
        let filter = FeedTopicFilter(request.topics)
        if let client = try await history.view(of: context) {
            return try await history.page(
                for: client,
                after: request.token,
                limit: request.limit,
                filter: filter,
                deadline: deadline
            )
        }
        return try await history.page(
            after: request.token,
            limit: request.limit,
            filter: filter,
            maxBytes: configuration.pageBytes,
            deadline: deadline
        )
    }

    private func follow(
        _ request: FeedFollow,
        _ context: RequestContext
    ) async throws(RPCError) -> FollowEnd {
        guard context.acceptsNotifications, context.credit != nil else {
            throw .followNeedsCredit
        }
        return try await FollowSession(history: history, configuration: configuration, clock: clock)
            .run(request, context)
    }

    private func head() async throws(RPCError) -> FeedHead {
        guard let head = await feed.head else { throw .brokerNotReady }
        return head
    }
}

extension ChangeBrokerRequest {
    /// True for requests that the change-broker refuses until it has reached the catalog for the first time.
    fileprivate var needsContact: Bool {
        switch self {
        case .head, .follow, .observe: true
        case .since, .unobserve, .details, .discover, .health, .figures: false
        }
    }
}
