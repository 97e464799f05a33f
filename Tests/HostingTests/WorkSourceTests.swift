import Contracts
import JSONValue
import Messaging
import Testing

@testable import Hosting

/// Tests of the client for which a request is answered, by which queues distribute their turns.
@Suite(.timeLimit(.minutes(1)))
struct WorkSourceTests {
    /// Replies with the client for which it works.
    private struct SourceHandler: RequestHandler {
        @concurrent
        func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
            Reply(.string("\(WorkSource.current)"))
        }
    }

    private func context(_ identity: String, _ role: Permission.Role, connection: UInt64) -> RequestContext {
        RequestContext(
            connection: ConnectionID(test: connection),
            identity: identity,
            cachedPermission: CachedPermission(Permission(role).byte)
        )
    }

    @Test func `a key is one client, and each connection of the host or of a service is one`() {
        for role in Permission.Role.allCases {
            let sources = Set((1...3).map { WorkSource(of: context("key:a", role, connection: $0)) })
            #expect(sources.count == (role == .host || role == .service ? 3 : 1), "\(role)")
        }
    }

    @Test func `a service's handler works for the client of the request`() async throws {
        let handler = GuardedHandler(
            SourceHandler(),
            access: { _ in .read },
            table: AccessTable(known: { _ in Permission(.readWrite) }),
            refusals: RefusalCounts()
        )
        let context = context("key:a", .readWrite, connection: 1)
        let reply = try await handler.handle(IncomingRequest(id: 1, method: "fetch.assets"), context)
        #expect(reply.result == .string("\(WorkSource.identity("key:a"))"))
        #expect(WorkSource.current == .service, "the source outside of a request")
    }

    @Test func `a sixteenth of a queue is reserved for each source, but at most eight entries`() {
        #expect([2, 16, 100, 256, 4096].map(WorkSource.reservedCount) == [0, 1, 6, 8, 8])
    }
}
