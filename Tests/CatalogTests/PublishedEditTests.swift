import Contracts
import JSONValue
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of published edits in the catalog.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct PublishedEditTests {
    private let subject: ObjectID = {
        var random = SeededRandom(seed: 5)
        return ObjectID(.asset, milliseconds: 5, using: &random)
    }()

    private func accept(_ id: String, _ asset: ObjectID? = nil, digest: String = "d1", after: String? = nil)
        -> ChangeRequest
    {
        .acceptEdit(
            .init(id: id, asset: asset ?? subject, predecessor: after, digest: digest, content: ["id": .string(id)])
        )
    }

    private func fail(_ id: String, _ asset: ObjectID? = nil, digest: String = "d1") -> ChangeRequest {
        .failEdit(
            .init(id: id, asset: asset ?? subject, digest: digest, errorName: "worker_crashed", errorMessage: "it died")
        )
    }

    // MARK: Rules

    private func perform(_ library: inout InMemoryLibrary, _ request: ChangeRequest, for publisher: String? = "key:ann")
        throws -> ChangeRecord
    {
        try library.perform([PreparedChange(request)], for: publisher).0
    }

    @Test func `each state of an edit is recorded once, and a repeated request adds no record`() throws {
        var library = InMemoryLibrary()
        let accepted = try perform(&library, accept("e1", after: "e0"))
        #expect(accepted.edits == [PublishedEdit(id: "e1", asset: subject, state: .accepted, predecessor: "e0")])
        #expect(accepted.topics == ["edit.e1"])
        #expect(try perform(&library, accept("e1", after: "e0")).edits.isEmpty)
        let failed = try perform(&library, fail("e1"))
        #expect(failed.edits.first?.state == .failed && failed.edits.first?.errorName == "worker_crashed")
        #expect(try perform(&library, fail("e1")).edits.isEmpty)
        #expect(
            try perform(&library, accept("e1", after: "e0")).edits.isEmpty,
            "a finished edit that is sent again is not accepted again"
        )
        #expect(library.sequence == 2)
        #expect(library.publishedEdit("e1", of: "key:ann")?.content == [])
    }

    @Test func `a failure whose message quotes a zero byte can be stored`() throws {
        var library = InMemoryLibrary()
        let failure = ChangeRequest.failEdit(
            .init(id: "e1", asset: subject, digest: "d1", errorName: "invalid_params", errorMessage: "no expo\0sure")
        )
        #expect(try perform(&library, failure).edits.first?.errorMessage == "no expo?sure")
        #expect(library.publishedEdit("e1", of: "key:ann")?.errorMessage == "no expo?sure")
    }

    @Test func `other content under a known id does not affect the existing edit`() throws {
        var library = InMemoryLibrary()
        _ = try perform(&library, accept("e1"))
        let refusal = #expect(throws: RPCError.self) { try perform(&library, accept("e1", digest: "d2")) }
        #expect(refusal?.errorCode == .idReused)
        let reported = try perform(&library, fail("e1", digest: "d2"))
        #expect(reported.edits.first?.errorName == "id_reused" && reported.edits.first?.refusedDigest == "d2")
        #expect(reported.edits.first?.state == .accepted, "the state of the existing edit, which has not failed")
        #expect(library.publishedEdit("e1", of: "key:ann")?.state == .accepted)
        // An edit of another publisher with the same id is a different edit.
        #expect(try perform(&library, accept("e1", digest: "d2"), for: "key:bob").edits.count == 1)
        #expect(library.pendingEdits() == 2)
    }

    @Test func `an edit is applied once, only after it was accepted, and is then finished`() throws {
        var library = InMemoryLibrary()
        let asset = try library.add(1)
        func edit(_ id: String) -> PreparedChange {
            var change = PreparedChange.edit(asset, "f", 7)
            if case .editAsset(var request) = change.request {
                request.publishedEdit = id
                change.request = .editAsset(request)
            }
            return change
        }
        #expect(throws: RPCError.self) { try library.perform([edit("e1")], for: "key:ann") }
        _ = try perform(&library, accept("e1", asset))
        let record = try library.perform([edit("e1")], for: "key:ann").0
        #expect(record.edits.map(\.state) == [.applied])
        #expect(record.assets.first?.isContentChanged == true)
        let again = #expect(throws: RPCError.self) { try library.perform([edit("e1")], for: "key:ann") }
        #expect(again?.errorCode == .conflict && again?.data["state"] == "applied")
        #expect(throws: RPCError.self) { try perform(&library, fail("e1", asset)) }
        // The edit e2 was accepted for another asset.
        let other = try library.add(2)
        _ = try perform(&library, accept("e2", other))
        #expect(throws: RPCError.self) { try library.perform([edit("e2")], for: "key:ann") }
    }

    @Test func `clients cannot record edits for themselves, and a transaction has at most one edit`() throws {
        var library = InMemoryLibrary()
        for request in [accept("e1"), fail("e1")] {
            let error = #expect(throws: RPCError.self) { try perform(&library, request, for: nil) }
            #expect(error?.errorCode == .accessDenied)
        }
        let both = [PreparedChange(accept("e1")), PreparedChange(accept("e2"))]
        let error = #expect(throws: RPCError.self) { try library.perform(both, for: "key:ann") }
        #expect(error?.errorCode == .invalidParams)
    }

    // MARK: Rows and requests

    private func call(_ catalog: CatalogFixture, _ request: ChangeRequest, for publisher: String) async throws
        -> PerformChanges.Result
    {
        try await catalog.call(PerformChanges(requests: [request], client: "edits", onBehalfOf: publisher))
    }

    @Test
    func `edits survive a restart, are paged oldest first, and their publisher can read their state`()
        async throws
    {
        let folder = try TemporaryFolder("edits")
        try await CatalogFixture.with(folder) { catalog in
            for index in 0..<5 { _ = try await call(catalog, accept("e\(index)"), for: "uid:4001") }
            _ = try await call(catalog, accept("e1"), for: "uid:4002")
            _ = try await call(catalog, fail("e2"), for: "uid:4001")
        }
        try await CatalogFixture.with(folder) { catalog in
            var ids: [String] = []
            var position: Int64?
            repeat {
                let page = try await catalog.call(EditsPending(after: position, limit: 2))
                ids += page.edits.map { "\($0.publisher) \($0.accepted.id)" }
                #expect(page.edits.allSatisfy { $0.accepted.content == ["id": .string($0.accepted.id)] })
                position = page.next
            } while position != nil
            #expect(ids == ["uid:4001 e0", "uid:4001 e1", "uid:4001 e3", "uid:4001 e4", "uid:4002 e1"])
            let status = try await catalog.call(EditsStatus(ids: ["e2", "e9", "e0"], onBehalfOf: "uid:4001"))
            #expect(status.edits.map(\.edit.state) == [.failed, .accepted])
            #expect(status.edits.first?.edit.errorMessage == "it died")
            #expect(status.edits.map(\.sequence) == [7, 1])
            #expect(status.unknown == ["e9"])
            // Without a publisher, the request is about the client's own edits.
            #expect(try await catalog.call(EditsStatus(ids: ["e0"])).unknown == ["e0"])
            let figures = try await catalog.call(Contracts.MetricsRequest()).members
            #expect(figures["library"]?["editsAccepted"] == 5)
            #expect(figures["library"]?["editsFinished"] == 1)
        }
    }

    @Test func `clients that are not services cannot record edits`() async throws {
        let folder = try TemporaryFolder("edits")
        try await CatalogFixture.with(folder) { catalog in
            let error = await rpcError { try await catalog.perform([accept("e1")]) }
            #expect(error?.errorCode == .accessDenied)
            let history = try await catalog.history()
            #expect(history.isEmpty)
        }
    }

    @Test func `finished edits are deleted by age and by number, pending ones never`() async throws {
        let fixture = try StoreFixture()
        func row(_ index: Int, _ state: PublishedEditState, date: Int64) -> StoredEdit {
            StoredEdit(
                publisher: "key:ann",
                id: "e\(index)",
                asset: subject,
                state: state,
                digest: "d",
                content: state == .accepted ? [1] : [],
                errorName: state == .failed ? "x" : nil,
                accepted: Int64(index + 1),
                sequence: Int64(index + 1),
                date: date
            )
        }
        let rows = (0..<30).map { row($0, [.accepted, .applied, .failed][$0 % 3], date: Int64($0)) }
        try await fixture.store.database.write { database in
            let store = EditStore(database: database)
            try store.save(rows)
            #expect(try store.pending() == 10)
            #expect(try store.finished() == 20)
            while try store.trim(before: 10, keep: 100, count: 3) {}
            #expect(try store.finished() == 14)
            while try store.trim(before: 0, keep: 5, count: 3) {}
            #expect(try store.finished() == 5)
            #expect(try store.pending() == 10)
            #expect(try store.edit("e0", of: "key:ann")?.state == .accepted)
            #expect(try store.edit("e1", of: "key:ann") == nil)
            #expect(try store.edit("e29", of: "key:ann")?.state == .failed)
        }
    }
}
