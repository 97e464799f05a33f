import JSONValue
import Contracts
import PhotoModel
import Testing

@testable import Catalog

/// Tests of the catalog's record of bytes that crashed or hung a worker.
@Suite(.timeLimit(.minutes(5)))
struct QuarantineTests {
    private let digest = String(repeating: "ab", count: 32)

    private func fault(_ digest: String, _ failures: Int = 1) -> ReportWorkerFault {
        ReportWorkerFault(
            digest: digest,
            name: "worker_crashed",
            reason: "signal 11",
            service: "editor",
            failures: failures
        )
    }

    @Test func `one failure is tolerated, two are quarantined, and lifting removes the entry`() async throws {
        let fixture = try StoreFixture()
        let quarantine = try await Quarantine(store: fixture.store, services: .noServices, now: { 7 })
        #expect(try await quarantine.report(fault(digest)).isSetAside == false)
        #expect(quarantine.entry(digest) == nil)
        let second = try await quarantine.report(fault(digest))
        #expect(second.isSetAside && second.failures == 2)
        let entry = try #require(quarantine.entry(digest))
        #expect((entry.failures, entry.reason, entry.service, entry.date) == (2, "signal 11", "editor", 7))
        #expect(entry.rpcError(of: "a.jpg").errorCode == .quarantined)
        #expect(entry.rpcError(of: "a.jpg").message.contains("a.jpg"))

        let after = try await Quarantine(store: fixture.store, services: .noServices, now: { 8 })
        #expect(after.entry(digest) == entry, "the entry survives a restart")
        #expect(try await after.list(ListQuarantine()).resources == [entry])
        #expect(try await after.lift(LiftQuarantine(digest: digest)).lifted == 1)
        #expect(after.entry(digest) == nil)
        #expect(try await after.report(fault(digest)).failures == 1)
    }

    @Test func `two attempts of one request are enough, and a page marks the affected assets`() async throws {
        let fixture = try StoreFixture()
        let quarantine = try await Quarantine(store: fixture.store, services: .noServices, now: { 7 })
        #expect(try await quarantine.report(fault(digest, 2)).isSetAside)
        var asset = Asset(id: .none)
        asset.resources = [
            AssetResource(type: .photo, digest: digest, size: 1, contentType: "public.jpeg"),
            AssetResource(type: .fullSizePhoto, digest: "c", size: 1, contentType: "public.jpeg"),
        ]
        #expect(quarantine.entries(of: [asset, asset]).map(\.digest) == [digest])
        #expect(try await quarantine.lift(LiftQuarantine(digest: nil)).lifted == 1)
        #expect(quarantine.entries(of: [asset]).isEmpty)
    }

    @Test func `the number of entries is bounded, and the latest are kept`() async throws {
        let fixture = try StoreFixture()
        let kept = try await fixture.store.changeQuarantine { store in
            for number in 0..<20 {
                let digits = String(number, radix: 16)
                let digest = String(repeating: "0", count: 64 - digits.count) + digits
                _ = try store.add(
                    ReportWorkerFault(digest: digest, name: "n", reason: "r", service: "s", failures: 2),
                    date: Int64(number),
                    most: 5
                )
            }
            return try store.entries(atLeast: 1).map(\.date)
        }
        #expect(kept == [19, 18, 17, 16, 15])
    }

    @Test func `only services report failures`() async throws {
        let fixture = try StoreFixture()
        let services = ServiceIdentities(ownUID: 1) { $0 == "key:editor" }
        let quarantine = try await Quarantine(store: fixture.store, services: services, now: { 7 })
        let refused = await rpcError { try await quarantine.report(fault(digest, 2), from: "key:ann") }
        #expect(refused?.errorCode == .accessDenied)
        #expect(try await quarantine.report(fault(digest, 2), from: "key:editor").isSetAside)
    }

    @Test func `the owner lifts the quarantine, also with a key`() throws {
        let access = try #require(CatalogRequest.access(of: LiftQuarantine.method))
        let roles = Permission.Role.allCases.filter { Permission($0).allows(access) }
        #expect(roles == [.owner, .host])
    }

    @Test func `a value that is not a digest is refused`() async throws {
        let fixture = try StoreFixture()
        let quarantine = try await Quarantine(store: fixture.store, services: .noServices, now: { 7 })
        await #expect(throws: (any Error).self) { try await quarantine.report(fault("../../etc")) }
    }
}
