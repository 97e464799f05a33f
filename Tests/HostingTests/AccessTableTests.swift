import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel
import Synchronization
import TestSupport
import Testing

@testable import Hosting

@Suite(.timeLimit(.minutes(1)))
struct AccessTableTests {
    /// A catalog that replies with the permission that the test has set.
    private final class FakeCatalog: Sendable {
        let permission = Mutex<Permission?>(Permission(.readWrite))
        let key = Mutex<String?>(nil)
        let requestCount = Mutex(0)

        func ask(_ identity: String) throws(RPCError) -> GrantStatus.Result {
            requestCount.withLock { $0 += 1 }
            guard let permission = permission.withLock({ $0 }) else {
                throw ErrorCode.unavailable.error("away")
            }
            var result = GrantStatus.Result(permission)
            result.key = key.withLock { $0 }
            return result
        }
    }

    private static func table(_ catalog: FakeCatalog) -> AccessTable {
        AccessTable { identity, _ throws(RPCError) in try catalog.ask(identity) }
    }

    private static func token(_ sequence: Int64) -> ChangeToken {
        ChangeToken(library: String(repeating: "a", count: 32), sequence: sequence)
    }

    @Test
    func `the owner is known by the connection, and others are looked up once while changes arrive`() async throws {
        let catalog = FakeCatalog()
        let table = Self.table(catalog)
        #expect(AccessTable.local("uid:7", ownUID: 7)?.role == .host)
        #expect(AccessTable.local("uid:8", ownUID: 7) == nil)
        #expect(AccessTable.local("key:uid:7", ownUID: 7) == nil)
        #expect(try await table.permission(of: "uid:0", nil).role == .host)
        // Changes do not arrive yet: no permission is cached.
        for _ in 0..<2 { #expect(try await table.permission(of: "key:a", nil).role == .readWrite) }
        #expect(catalog.requestCount.withLock { $0 } == 2)
        table.confirm()
        for _ in 0..<3 { #expect(try await table.permission(of: "key:a", nil).role == .readWrite) }
        #expect(catalog.requestCount.withLock { $0 } == 3)
        #expect(table.cachedPermission(of: "key:a") === table.cachedPermission(of: "key:a"))
    }

    @Test func `without an answer an unknown identity is refused, and so is a known one after changes were lost`()
        async throws
    {
        let catalog = FakeCatalog()
        let table = Self.table(catalog)
        table.confirm()
        _ = try await table.permission(of: "key:known", nil)
        catalog.permission.withLock { $0 = nil }
        let error = await #expect(throws: RPCError.self) { try await table.permission(of: "key:new", nil) }
        #expect(error?.errorCode == .unavailable)
        #expect(try await table.permission(of: "key:known", nil).role == .readWrite)
        table.forget()
        await #expect(throws: RPCError.self) { try await table.permission(of: "key:known", nil) }
        #expect(table.mayRead("key:known") == nil)
    }

    @Test func `another key of the same name inherits nothing`() async throws {
        let catalog = FakeCatalog()
        let table = Self.table(catalog)
        table.confirm()
        catalog.key.withLock { $0 = "first" }
        let old = table.cachedPermission(of: "key:a", key: "first")
        #expect(try await table.permission(of: "key:a", old).role == .readWrite)
        #expect(
            table.cachedPermission(of: "key:a") === old && table.cachedPermission(of: "key:a", key: "first") === old
        )
        catalog.permission.withLock { $0 = Permission(.undecided) }
        catalog.key.withLock { $0 = "second" }
        let new = table.cachedPermission(of: "key:a", key: "second")
        #expect(new !== old)
        #expect(Permission(byte: old.value).role == .denied)
        #expect(try await table.permission(of: "key:a", new).role == .undecided)
    }

    @Test func `a key does not have the access of another key of the same name that the catalog lists`()
        async throws
    {
        let catalog = FakeCatalog()
        catalog.key.withLock { $0 = "theirs" }
        let table = AccessTable(listedKey: { $0 == "key:pusher" ? "own" : nil }) { identity, _ throws(RPCError) in
            try catalog.ask(identity)
        }
        table.confirm()
        let own = table.cachedPermission(of: "key:a", key: "own")
        #expect(try await table.permission(of: "key:a", own).role == .denied)
        await table.note(Grant(identity: "key:a", status: .authorized), at: Self.token(1))
        #expect(Permission(byte: own.value).role == .denied)
        #expect(try await table.permission(of: "key:pusher", nil).role == .denied)
        let theirs = table.cachedPermission(of: "key:b", key: "theirs")
        #expect(try await table.permission(of: "key:b", theirs).role == .readWrite)
    }

    @Test func `a key that replaced another one has its own access, also if it makes no request`() async throws {
        let catalog = FakeCatalog()
        let listed = Mutex("first")
        let table = AccessTable(listedKey: { _ in listed.withLock { $0 } }) { identity, _ throws(RPCError) in
            try catalog.ask(identity)
        }
        table.confirm()
        catalog.key.withLock { $0 = "first" }
        let old = table.cachedPermission(of: "key:a", key: "first")
        #expect(try await table.permission(of: "key:a", old).role == .readWrite)
        // The lists are copied after the catalog has the new key.
        catalog.key.withLock { $0 = "second" }
        await table.note(Grant(identity: "key:a", status: .authorized), at: Self.token(1))
        #expect(table.knownPermission(of: "key:a")?.role == .denied)
        listed.withLock { $0 = "second" }
        #expect(try await table.permission(of: "key:a", nil).role == .readWrite)
        #expect(table.knownPermission(of: "key:a")?.role == .readWrite)
        #expect(Permission(byte: old.value).role == .denied)
    }

    @Test func `a change of consent ends no request, and data is kept as long as the identity may add`() async throws {
        let catalog = FakeCatalog()
        let table = Self.table(catalog)
        table.confirm()
        let reviewed = Mutex(0)
        table.onChange { _ in reviewed.withLock { $0 += 1 } }
        _ = try await table.permission(of: "key:a", nil)
        table.setPermission(of: "key:a", to: Permission(.addOnly))
        #expect(reviewed.withLock { $0 } == 1)
        #expect(table.mayKeep("key:a", for: .add) && !table.mayKeep("key:a"))
        table.setPermission(of: "key:a", to: Permission(.addOnly, consent: .always))
        #expect(reviewed.withLock { $0 } == 1)
        #expect(Permission(byte: table.cachedPermission(of: "key:a").value).consent == .always)
        table.setPermission(of: "key:a", to: Permission(.denied))
        #expect(reviewed.withLock { $0 } == 2 && !table.mayKeep("key:a", for: .add))
    }

    @Test func `the result of a lookup before a change is not cached`() async throws {
        let reached = Promise<Void>()
        let release = Promise<Void>()
        let calls = Mutex(0)
        let table = AccessTable { _, _ throws(RPCError) in
            let isFirst = calls.withLock { calls in
                calls += 1
                return calls == 1
            }
            guard isFirst else { return GrantStatus.Result(Permission(.denied)) }
            reached.fulfill(())
            await release.value()
            return GrantStatus.Result(Permission(.readWrite))
        }
        table.confirm()
        async let early = table.permission(of: "key:a", nil)
        await reached.value()
        await table.note(Grant(identity: "key:a", status: .denied), at: Self.token(1))
        release.fulfill(())
        _ = try await early
        #expect(Permission(byte: table.cachedPermission(of: "key:a").value).role == .denied)
    }

    @Test func `a changed grant is looked up, and is used alone if the catalog does not answer`() async throws {
        let catalog = FakeCatalog()
        let table = Self.table(catalog)
        table.confirm()
        let reviewed = Mutex<[Set<String>]>([])
        table.onChange { identities in reviewed.withLock { $0.append(identities) } }
        _ = try await table.permission(of: "key:a", nil)
        await table.note(Grant(identity: "key:stranger", status: .denied), at: Self.token(1))
        #expect(reviewed.withLock { $0 } == [])
        catalog.permission.withLock { $0 = Permission(.addOnly) }
        await table.note(Grant(identity: "key:a", status: .authorized), at: Self.token(2))
        #expect(Permission(byte: table.cachedPermission(of: "key:a").value).role == .addOnly)
        catalog.permission.withLock { $0 = nil }
        await table.note(Grant(identity: "key:a", status: .denied), at: Self.token(3))
        #expect(Permission(byte: table.cachedPermission(of: "key:a").value).role == .denied)
        #expect(reviewed.withLock { $0 } == [["key:a"], ["key:a"]])
        #expect(table.mayKeep("key:a") == false)
    }

    @Test func `each lookup names the newest change of any grant, which its result has to include`() async throws {
        let asked = Mutex<[Int64?]>([])
        let table = AccessTable { _, newest throws(RPCError) in
            asked.withLock { $0.append(newest?.sequence) }
            return GrantStatus.Result(Permission(.readWrite))
        }
        table.confirm()
        _ = try await table.permission(of: "key:a", nil)
        await table.note(Grant(identity: "key:stranger", status: .denied), at: Self.token(9))
        // Two records may be noted in another order.
        await table.note(Grant(identity: "key:other", status: .denied), at: Self.token(7))
        _ = try await table.permission(of: "key:b", nil)
        await table.note(Grant(identity: "key:b", status: .authorized), at: Self.token(10))
        // A restored library has another history, with lower sequences.
        let restored = ChangeToken(library: String(repeating: "b", count: 32), sequence: 3)
        await table.note(Grant(identity: "key:stranger", status: .denied), at: restored)
        #expect(table.newestChange == restored)
        _ = try await table.permission(of: "key:c", nil)
        #expect(asked.withLock { $0 } == [nil, 9, 10, 3])
    }

    @Test func `a change that arrives during repeated lookups is not undone by an earlier result`() async {
        let (reached, release, repeated) = (Promise<Void>(), Promise<Void>(), Promise<Void>())
        let calls = Mutex(0)
        let table = AccessTable { _, _ throws(RPCError) in
            let call = calls.withLock { calls in
                calls += 1
                return calls
            }
            if call == 3 { repeated.fulfill(()) }
            guard call == 1 else { return GrantStatus.Result(Permission(.denied)) }
            reached.fulfill(())
            await release.value()
            return GrantStatus.Result(Permission(.readWrite))
        }
        let cached = table.cachedPermission(of: "key:a")
        table.confirm()
        await reached.value()
        await table.note(Grant(identity: "key:a", status: .denied), at: Self.token(1))
        release.fulfill(())
        await repeated.value()
        #expect(Permission(byte: cached.value).role == .denied)
    }

    @Test func `a service that repeats lookups reviews requests only if the permission has changed`() async throws {
        let catalog = FakeCatalog()
        catalog.permission.withLock { $0 = Permission(.limited) }
        let table = Self.table(catalog)
        let reviewed = Mutex<[Set<String>]>([])
        table.onChange { identities in reviewed.withLock { $0.append(identities) } }
        // This happens after a start, and after the catalog was unreachable: no permission is cached, and lookups have
        // the same result.
        _ = try await table.permission(of: "key:a", nil)
        table.setPermission(of: "key:a", to: Permission(.limited))
        table.forget()
        _ = try await table.permission(of: "key:a", nil)
        table.setPermission(of: "key:a", to: Permission(.limited))
        #expect(reviewed.withLock { $0 } == [])
        table.forget()
        catalog.permission.withLock { $0 = Permission(.readWrite) }
        _ = try await table.permission(of: "key:a", nil)
        #expect(reviewed.withLock { $0 } == [["key:a"]])
    }

    @Test func `a permission that becomes known is reported, and no request is reviewed`() async throws {
        let catalog = FakeCatalog()
        catalog.permission.withLock { $0 = Permission(.limited) }
        let table = Self.table(catalog)
        let reviewed = Mutex<[Set<String>]>([])
        let answers = AsyncStream.makeStream(of: Void.self)
        table.onChange { identities in reviewed.withLock { $0.append(identities) } }
        table.onAnswer { answers.continuation.yield() }
        var reports = answers.stream.makeAsyncIterator()
        table.confirm()
        #expect(table.mayRead("key:a") == nil)
        #expect(await reports.next() != nil)
        #expect(table.mayRead("key:a") == false)
        // After the catalog was unreachable the answer comes with those about all identities.
        table.forget()
        table.setPermission(of: "key:a", to: Permission(.limited))
        #expect(await reports.next() != nil)
        #expect(reviewed.withLock { $0 } == [])
    }

    @Test func `refusals are counted by identity, and beyond the limit together`() {
        let counts = RefusalCounts()
        for number in 0..<1200 { counts.count("key:\(number)") }
        counts.count("key:0")
        let refused = counts.metrics["refused"]?.objectValue
        #expect(refused?["key:0"] == 2)
        #expect(refused?["others"] == 200)
        #expect(refused?.members.count == 1001)
    }

    @Test
    func `a key file states access, a file of an earlier version states readWrite, and unknown texts state ask`() throws
    {
        let folder = try TestSupport.TemporaryFolder("statements")
        let keys = KeyFolder(path: folder.file("keys"))
        _ = try keys.makeServer()
        let statement = KeyStatement(.addOnly, consent: .destructive, purpose: "says \"cheese\" = yes")
        let ann = try keys.create("ann", lists: [.requests], output: folder.file("ann"), statement: statement)
        #expect(try keys.read(.requests).keys.first?.statement == statement)
        // On another list its file has the same statement.
        try keys.admit(ann, as: "ann", to: [.feed])
        #expect(try keys.read(.feed).keys.first?.statement == statement)
        let pair = try CurveKeyPair.generate()
        var certificate = Certificate(publicKey: pair.publicKey)
        #expect(KeyStatement(certificate) == KeyStatement(.readWrite))
        certificate.metadata = [("access", "everything"), ("consent", "sometimes")]
        #expect(KeyStatement(certificate) == KeyStatement(.ask, consent: .always))
        withExtendedLifetime(folder) {}
    }
}
