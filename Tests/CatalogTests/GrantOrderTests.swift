import Basics
import Contracts
import Dispatch
import JSONValue
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import Catalog

/// Tests of decisions about access: the identities that they can be about, and the order in which the catalog and its
/// followers receive a decision.
@Suite(.timeLimit(.minutes(1)))
struct GrantOrderTests {
    @Test func `a decision about an identity that is neither a key nor a user is refused`() async throws {
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

    @Test func `the consent setting is kept when access is revoked and approved again`() async throws {
        let folder = try TemporaryFolder("grant-consent")
        try await CatalogFixture.with(folder) { catalog in
            let (grants, identity) = (catalog.service.grants, "uid:4242")
            _ = try await grants.approve(ApproveGrant(identity: identity, consent: .always), by: "test")
            _ = try await grants.revoke(RevokeGrant(identity: identity), by: "test")
            let again = try await grants.approve(ApproveGrant(identity: identity), by: "test")
            #expect(again.grant?.consent == .always)
        }
    }

    @Test func `a service acts for a key only while the key is listed, and for users of other machines`() {
        let grant = Grant(identity: "key:bob", status: .authorized, consent: .always, key: "bob")
        let denied = Grant(identity: "uid:4243", status: .denied)
        let registry = GrantRegistry([grant, denied], keys: .none)
        #expect(registry.permission(onBehalfOf: "key:bob").role == .denied)
        #expect(registry.permission(onBehalfOf: "uid:4242").role == .readWrite)
        #expect(registry.permission(onBehalfOf: "uid:4243").role == .denied)
    }

    @Test func `a limited key learns nothing of an earlier key of its name`() async throws {
        var random = SeededRandom(seed: 5)
        let asset = ObjectID(.asset, milliseconds: 5, using: &random)
        var edited = ChangeRecord(sequence: 1, library: "l", date: 0, origin: ChangeOrigin(identity: "edits"))
        edited.origin.onBehalfOf = "key:bob"
        edited.edits = [PublishedEdit(id: "e", asset: asset, state: .accepted)]
        var asked = ChangeRecord(sequence: 2, library: "l", date: 0, origin: ChangeOrigin(identity: "key:bob"))
        asked.questions = [ConsentQuestion(id: "q", identity: "key:bob")]
        let earlier = Grant(identity: "key:bob", status: .authorized, purpose: "theirs", key: "first")
        var decided = ChangeRecord(sequence: 3, library: "l", date: 0, origin: ChangeOrigin(identity: "uid:1"))
        decided.grants = [EntityChange(before: nil, after: earlier)]
        var limited = ChangeRecord(sequence: 4, library: "l", date: 0, origin: ChangeOrigin(identity: "uid:1"))
        var grant = Grant(identity: "key:bob", status: .limited, scope: .limited, key: "second")
        grant.removed = [asset]
        limited.grants = [EntityChange(before: earlier, after: grant)]
        let records = [edited, asked, decided, limited, edited].map(\.bytes)
        let folder = try TemporaryFolder("grant-key")
        try await CatalogFixture.with(folder) { catalog in
            let seen = try await catalog.service.store.read { reader in
                let head = try reader.head()
                let view = LimitedView(identity: "key:bob", key: "second", lists: GrantedAssetLists())
                var limited = try LimitedRecords(view, reader, after: 0, head)
                return try records.map { try limited.rewriteNext($0) { (reader, head) } }
            }
            #expect(seen.prefix(3).allSatisfy { $0 == nil })
            let own = try ChangeRecord(json: JSON(parsing: #require(seen[3])))
            #expect(own.grants.count == 1 && own.grants[0].before == nil && own.grants[0].after?.removed == [])
            #expect(seen[4] != nil, "it receives its own edits from now on")
        }
    }

    @Test func `consent to a transaction is not consent to another one with the same id and digest`() async throws {
        let folder = try TemporaryFolder("consent-digest")
        try await CatalogFixture.with(folder) { catalog in
            let (changes, consent) = (catalog.service.handler.changes, catalog.service.grants.consent)
            let transaction = PerformChanges(
                requests: [.createCollection(.init(title: "A"))],
                client: "c",
                transaction: "t",
                requestDigest: "d"
            )
            var other = transaction
            other.requests = [.createCollection(.init(title: "B"))]
            // Its deadline has passed, so it does not wait for the decision.
            let context = RequestContext(
                identity: "key:ann",
                cachedPermission: CachedPermission(Permission(.readWrite, consent: .always).byte),
                deadlineMicroseconds: 0
            )
            let undecided = await rpcError { try await changes.perform(transaction, context) }
            #expect(undecided?.errorCode == .userCancelled && undecided?.data["isWaiting"] == true)
            let question = try #require(consent.pending.first)
            _ = try await consent.decide(question.id, isApproved: true, by: "uid:1")
            let refused = await rpcError { try await changes.perform(other, context) }
            #expect(refused?.errorCode == .idReused)
            _ = try await changes.perform(transaction, context)
            #expect(try await catalog.collections().map(\.title) == ["A"])
        }
    }

    @Test func `consent to a transaction is consent to the bytes of its uploads`() async throws {
        let folder = try TemporaryFolder("consent-uploads")
        try await CatalogFixture.with(folder) { catalog in
            let (changes, consent) = (catalog.service.handler.changes, catalog.service.grants.consent)
            let (uploads, identity) = (catalog.service.uploads, "key:ann")
            let context = RequestContext(
                identity: identity,
                cachedPermission: CachedPermission(Permission(.readWrite, consent: .always).byte),
                deadlineMicroseconds: 0
            )
            func perform(_ bytes: Bytes) async throws -> RPCError? {
                let name = try await uploads.begin(BeginUpload(), identity: identity).upload
                _ = try await uploads.append(AppendUpload(upload: name, offset: 0), [bytes], identity: identity)
                let create = ChangeRequest.createAsset(.init(ref: "p", resources: [NewResource(source: .upload(name))]))
                let transaction = PerformChanges(requests: [create], client: "c", transaction: "t")
                let early = await rpcError { try await changes.perform(transaction, context) }
                #expect(early?.errorCode == .invalidParams && early?.data["request"] == 0)
                _ = try await uploads.finish(FinishUpload(upload: name), identity: identity)
                return await rpcError { try await changes.perform(transaction, context) }
            }
            #expect(try await perform(image(1))?.errorCode == .userCancelled)
            let question = try #require(consent.pending.first)
            _ = try await consent.decide(question.id, isApproved: true, by: "uid:1")
            #expect(try await perform(image(2))?.errorCode == .idReused)
            #expect(try await perform(image(1)) == nil)
            #expect(try await catalog.assets().count == 1)
        }
    }

    @Test(.onlySQLite) func `a decision that could not be recorded has no effect, and can be repeated`() async throws {
        let folder = try TemporaryFolder("consent-record")
        try await CatalogFixture.with(folder) { catalog in
            let consent = catalog.service.grants.consent
            let changes = PerformChanges(
                requests: [.createCollection(.init(title: "A"))],
                client: "c",
                transaction: "t"
            )
            func require() async throws {
                try await consent.require(
                    ConsentSummary(changes.requests),
                    of: changes,
                    OutcomeKey(identity: "key:ann", client: "c", transaction: "t"),
                    [1],
                    identity: "key:ann",
                    RequestContext(identity: "key:ann", deadlineMicroseconds: 0)
                )
            }
            #expect(await rpcError { try await require() }?.errorCode == .userCancelled)
            let id = try #require(consent.pending.first).id
            try await catalog.service.store.onWriter { database in
                try database.run(
                    once: """
                        CREATE TEMP TRIGGER refuse BEFORE INSERT ON change
                        BEGIN SELECT RAISE(ABORT, 'refused'); END
                        """
                )
            }
            let failed = await rpcError { try await consent.decide(id, isApproved: true, by: "uid:1") }
            #expect(failed?.errorCode == .internalError)
            #expect(await rpcError { try await require() }?.errorCode == .userCancelled)
            #expect(consent.pending.map(\.id) == [id])
            try await catalog.service.store.onWriter { try $0.run(once: "DROP TRIGGER temp.refuse") }
            _ = try await consent.decide(id, isApproved: true, by: "uid:1")
            try await require()
        }
    }

    @Test func `consent questions of an identity whose access is denied are declined`() async throws {
        let folder = try TemporaryFolder("consent-denied")
        try await CatalogFixture.with(folder) { catalog in
            let (grants, consent) = (catalog.service.grants, catalog.service.grants.consent)
            func require(_ identity: String) async -> RPCError? {
                let changes = PerformChanges(requests: [.createCollection(.init(title: "A"))], transaction: "t")
                return await rpcError {
                    try await consent.require(
                        ConsentSummary(changes.requests),
                        of: changes,
                        OutcomeKey(identity: identity, client: "", transaction: "t"),
                        [1],
                        identity: identity,
                        RequestContext(identity: identity, deadlineMicroseconds: 0)
                    )
                }
            }
            for identity in ["uid:54321", "uid:54322"] { #expect(await require(identity)?.data["isWaiting"] == true) }
            let id = try #require(consent.pending.first { $0.identity == "uid:54321" }).id
            _ = try await grants.deny(DenyGrant(identity: "uid:54321"), by: "uid:1")
            #expect(consent.pending.map(\.identity) == ["uid:54322"])
            let late = await rpcError { try await consent.decide(id, isApproved: true, by: "uid:1") }
            #expect(late?.errorCode == .identifierNotFound)
            #expect(consent.count == 1)
        }
    }

    @Test func `a decision about a transaction without an id that ends meanwhile is refused`() async throws {
        let folder = try TemporaryFolder("consent-ended")
        try await CatalogFixture.with(folder) { catalog in
            let (service, consent) = (catalog.service, catalog.service.grants.consent)
            let head = service.tail.head
            let asking = Task {
                let changes = PerformChanges(requests: [.createCollection(.init(title: "A"))], client: "c")
                return await rpcError {
                    try await consent.require(
                        ConsentSummary(changes.requests),
                        of: changes,
                        nil,
                        [],
                        identity: "key:ann",
                        RequestContext(identity: "key:ann")
                    )
                }
            }
            while service.tail.head == head, !Task.isCancelled { await Task.yield() }
            let id = try #require(consent.pending.first).id
            // Holds the writer, so that the transaction ends while the decision is recorded.
            let gate = DispatchSemaphore(value: 0)
            try await catalog.holdWriter(until: gate)
            defer { gate.signal() }
            async let refused = rpcError { try await consent.decide(id, isApproved: true, by: "uid:1") }
            try await service.writer.waitUntilQueued(1, releasing: gate)
            asking.cancel()
            while consent.count > 0, !Task.isCancelled { await Task.yield() }
            gate.signal()
            #expect(await refused?.errorCode == .identifierNotFound)
            #expect(await asking.value?.errorCode == .userCancelled)
        }
    }

    /// A follower asks for the permission of an identity as soon as it reads the record of the decision. If the reply
    /// had the old permission, the follower would keep it until the next decision.
    @Test func `a decision has an effect before the followers of the records are woken`() async throws {
        let folder = try TemporaryFolder("grant-order")
        try await CatalogFixture.with(folder) { catalog in
            let service = catalog.service
            for (number, status) in [AuthorizationStatus.authorized, .denied, .authorized].enumerated() {
                let identity = "uid:4242"
                let head = service.tail.head
                let change = GrantChange(identity: identity) { _ in
                    Grant(identity: identity, status: status, date: Int64(number + 1))
                }
                // Only the writer is used: no step after its reply has an effect on the result.
                let performed = try await service.writer.perform(.grant(change, by: "test"))
                #expect(performed.record?.sequence == head + 1)
                #expect(service.tail.head == head + 1)
                #expect(service.grants.registry.grant(of: identity).status == status)
                let answer = try await catalog.call(GrantStatus(identity: identity))
                #expect(answer.permission.allows(.read) == (status == .authorized))
            }
        }
    }

    /// A standby receives the record of a decision later than the followers of the catalog that writes.
    @Test
    func `grants.status waits for the record of its token, unless the token is of another history`() async throws {
        let folder = try TemporaryFolder("grant-token")
        try await CatalogFixture.with(folder) { catalog in
            let service = catalog.service
            let identity = "uid:4242"
            let next = ChangeToken(library: service.store.historyID, sequence: service.tail.head + 1)
            let request = GrantStatus(identity: identity, atLeast: next)
            let error = await rpcError {
                try await catalog.client.call(GrantStatus.method, request.json, deadline: .milliseconds(400))
            }
            #expect(error?.errorCode == .behind || error?.errorCode == .deadlineExceeded)
            let other = ChangeToken(library: String(repeating: "0", count: 32), sequence: next.sequence)
            #expect(try await !catalog.call(GrantStatus(identity: identity, atLeast: other)).permission.allows(.read))
            async let answer = catalog.call(request)
            let change = GrantChange(identity: identity) { _ in
                Grant(identity: identity, status: .authorized, date: 1)
            }
            _ = try await service.writer.perform(.grant(change, by: "test"))
            #expect(try await answer.permission.allows(.read))
        }
    }
}
