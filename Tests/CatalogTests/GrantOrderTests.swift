import Contracts
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Decisions about access: whom they can be about, and the order in which the catalog and its followers learn of a decision about access.
@Suite(.timeLimit(.minutes(1)))
struct GrantOrderTests {
    @Test func `a decision is about a key or a user, and nothing else is stored`() async throws {
        let folder = try TemporaryFolder("grant-identity")
        try await CatalogFixture.with(folder) { catalog in
            for identity in ["uid:abc", "uid:", "uid:-1", "uid:4294967296", "uid:07", "ann", "key", "group:7"] {
                let error = await rpcError {
                    try await catalog.service.grants.approve(ApproveGrant(identity: identity), by: "test")
                }
                #expect(error?.errorCode == .invalidOptions, "\(identity)")
            }
            _ = try await catalog.service.grants.approve(ApproveGrant(identity: "uid:4294967295"), by: "test")
            #expect(catalog.service.grants.registry.count == 1)
        }
    }

    /// A follower asks what an identity may do as soon as it reads the record of the decision. If the answer were the one of
    /// before, the follower would keep it until the next decision.
    @Test func `a decision is known before those who follow the records are woken`() async throws {
        let folder = try TemporaryFolder("grant-order")
        try await CatalogFixture.with(folder) { catalog in
            let service = catalog.service
            for (number, status) in [AuthorizationStatus.authorized, .denied, .authorized].enumerated() {
                let identity = "uid:4242"
                let head = service.tail.head
                let change = GrantChange(identity: identity) { _ in
                    Grant(identity: identity, status: status, date: Int64(number + 1))
                }
                // The writer alone: nothing that runs after its answer has a part in this.
                let performed = try await service.writer.perform(.grant(change, by: "test"))
                #expect(performed.record?.sequence == head + 1)
                #expect(service.tail.head == head + 1)
                #expect(service.grants.registry.grant(of: identity).status == status)
                let answer = try await catalog.call(GrantStatus(identity: identity))
                #expect(answer.permission.allows(.read) == (status == .authorized))
            }
        }
    }
}
