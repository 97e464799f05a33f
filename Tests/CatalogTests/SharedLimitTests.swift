import Basics
import Contracts
import Hosting
import JSONValue
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests that a client below its own limit gets `busy` at a limit of all clients together.
@Suite(.timeLimit(.minutes(1)))
struct SharedLimitTests {
    @Test func `transient collections of other clients do not count against the limit of a client`() async throws {
        let transients = TransientCollectionRegistry(limits: .init(members: 3, membersPerIdentity: 2))
        let member = try transients.create(.assetCollection, [], identity: "a")
        _ = try transients.create(.collectionList, [member, member], identity: "a")
        let own = await rpcError { try transients.create(.collectionList, [member], identity: "a") }
        #expect(own?.errorCode == .limitExceeded && own?.data["limit"] == 32)
        let other = await rpcError { try transients.create(.collectionList, [member, member], identity: "b") }
        #expect(other?.errorCode == .busy && other?.data["limit"] == 3)
        _ = try transients.create(.collectionList, [member], identity: "b")
    }

    @Test func `uploads of other clients do not count against the limit of a client`() async throws {
        let folder = try TemporaryFolder("uploads")
        var limits = UploadRegistry.Limits()
        (limits.perIdentity, limits.all) = (2, 3)
        let uploads = UploadRegistry(
            resources: try ResourceStore(root: folder.file("resources")),
            blockingIO: BlockingIOExecutor(),
            clock: .system,
            limits: limits,
            makeName: CatalogEnvironment().makeName
        )
        for identity in ["a", "a", "b"] { _ = try await uploads.begin(BeginUpload(), identity: identity) }
        let own = await rpcError { try await uploads.begin(BeginUpload(), identity: "a") }
        #expect(own?.errorCode == .limitExceeded && own?.data["open"] == 2)
        let other = await rpcError { try await uploads.begin(BeginUpload(), identity: "c") }
        #expect(other?.errorCode == .busy && other?.data["limit"] == 3 && other?.data["open"] == 0)
        withExtendedLifetime(folder) {}
    }
}
