import Basics
import Contracts
import JSONValue
import Logging
import Messaging
import PhotoModel
import TestSupport
import Testing

@testable import PhotoClient

/// A client of two catalogs, of which one writes.
@Suite(.timeLimit(.minutes(1)))
struct CatalogsTests {
    private static let names = ["one", "two"]
    private let requests = RecordedList<String>()
    private let change = ChangeRequest.createCollection(.init(title: "album"))

    /// Serves two catalogs with a script each, and runs a body with a library that knows both.
    private func with(
        _ first: @escaping ScriptedHandler.Script,
        _ second: @escaping ScriptedHandler.Script,
        _ body: @escaping @Sendable (PhotoLibrary) async throws -> Void
    ) async throws {
        try await ClientFixture.with { fixture in
            var endpoints = fixture.endpoints
            endpoints.catalogs = try Self.names.map { try EndpointAddress("ipc://\(fixture.folder.file($0))") }
            let library = try PhotoLibrary(
                endpoints: endpoints,
                client: "test",
                limits: ClientFixture.limits,
                logger: ClientFixture.logger
            )
            let addresses = endpoints.catalogs
            try await fixture.serving(addresses[0], recorded("one", first)) {
                try await fixture.serving(addresses[1], recorded("two", second)) {
                    for instance in library.catalog.instances { _ = await instance.rpcError(of: CurrentToken()) }
                    try await body(library)
                }
            }
            await library.close()
        }
    }

    private func recorded(_ name: String, _ script: @escaping ScriptedHandler.Script) -> ScriptedHandler {
        ScriptedHandler { [requests] request, context throws(RPCError) in
            if request.method == CurrentToken.method { return Reply(Self.head(1)) }
            if request.method != Health.method { requests.add("\(name) \(request.method)") }
            return try await script(request, context)
        }
    }

    private static func head(_ sequence: Int64) -> JSON {
        CurrentToken.Result(token: token(sequence), oldest: token(0)).json
    }

    private static func counted(_ count: Int) -> Reply {
        Reply(FetchCounts.Result(token: token(1), counts: [count]).json)
    }

    private static let standby = ErrorCode.libraryReadOnly.error("this catalog is a standby", ["standby": true])

    /// A script that responds to no request, also not to `health`, until the client cancels it.
    private static let unresponsive: ScriptedHandler.Script = { _, _ throws(RPCError) in
        await withTaskCancellationHandler {
            await Promise<Void>().value(ifCancelled: ())
        } onCancel: {
        }
        throw .internalError("cancelled")
    }

    private func count(_ library: PhotoLibrary) async throws -> Int {
        try await library.catalog.ask(FetchCounts(fetches: [FetchDescription(.assets)])).result.counts[0]
    }

    @Test func `a read goes to the first catalog, and to the other one while the first does not answer`() async throws {
        try await with(Self.unresponsive, { _, _ in Self.counted(2) }) { library async throws in
            let start = ContinuousClock.now
            #expect(try await count(library) == 2)
            #expect(ContinuousClock.now - start < .seconds(2))
            // The next read goes to the catalog that answered, and to no other.
            #expect(try await count(library) == 2)
            #expect(requests.all == ["one fetch.counts", "two fetch.counts", "two fetch.counts"])
        }
    }

    @Test func `a read waits for a slow catalog if another one returns an error`() async throws {
        let (secondRequest, secondRequestSignal) = AsyncStream.makeStream(of: Void.self)
        try await with(
            { _, _ in
                for await _ in secondRequest {}
                return Self.counted(1)
            },
            { _, _ throws(RPCError) in
                secondRequestSignal.finish()
                throw ErrorCode.handleExpired.error("the collection is in the memory of another catalog")
            }
        ) { library async throws in
            #expect(try await count(library) == 1)
            #expect(requests.all == ["one fetch.counts", "two fetch.counts"])
        }
    }

    @Test func `a read goes to another catalog if one has lost its database, and fails with the first error`()
        async throws
    {
        try await with(
            { _, _ throws(RPCError) in throw ErrorCode.libraryOffline.error("no database") },
            { _, _ throws(RPCError) in throw ErrorCode.invalidPredicate.error("wrong") }
        ) { library async throws in
            let error = await library.catalog.rpcError(of: FetchCounts(fetches: [FetchDescription(.assets)]))
            #expect(error?.errorCode == .libraryOffline)
        }
        try await with(
            { _, _ throws(RPCError) in throw ErrorCode.libraryOffline.error("no database") },
            { _, _ in Self.counted(2) }
        ) { library async throws in
            #expect(try await count(library) == 2)
        }
    }

    @Test func `a collection in the memory of one catalog is read there`() async throws {
        try await with(
            { _, _ throws(RPCError) in throw ErrorCode.handleExpired.error("no such collection") },
            { _, _ in Self.counted(2) }
        ) { library async throws in
            #expect(try await count(library) == 2)
        }
    }

    @Test func `a request that waits for an event is sent to one catalog only`() async throws {
        let (healthRequest, healthRequestSignal) = AsyncStream.makeStream(of: Void.self)
        let health = Health.Result(service: "catalog", version: "1", isHealthy: true, problems: [], sequence: 1).json
        try await with(
            { request, _ in
                // The health is requested after a second without a response.
                if request.method == Health.method {
                    healthRequestSignal.finish()
                    return Reply(health)
                }
                for await _ in healthRequest {}
                return Reply(LibraryStatus.Result(since: 1).json)
            },
            { _, _ in Reply(LibraryStatus.Result(since: 2).json) }
        ) { library async throws in
            let status = try await library.catalog.ask(LibraryStatus(after: 1)).result
            #expect(status.since == 1 && requests.all == ["one library.status"])
        }
    }

    @Test func `requests stay at a catalog while its connection has the maximum number of them`() async throws {
        let waiting = RecordedList<Promise<Void>>()
        let health = Health.Result(service: "catalog", version: "1", isHealthy: true, problems: [], sequence: 1).json
        try await with(
            { request, _ in
                // The health is requested after a second without a response.
                if request.method == Health.method {
                    for promise in waiting.all { promise.fulfill(()) }
                    return Reply(health)
                }
                let promise = Promise<Void>()
                waiting.add(promise)
                await promise.value(ifCancelled: ())
                return Reply(LibraryStatus.Result(since: 1).json)
            },
            { _, _ in Reply(LibraryStatus.Result(since: 2).json) }
        ) { library async throws in
            try await withThrowingTaskGroup(of: Int64.self) { group in
                for _ in 0..<ClientFixture.limits.requestsPerConnection {
                    group.addTask { try await library.catalog.ask(LibraryStatus(after: 1)).result.since }
                }
                for try await since in group { #expect(since == 1) }
            }
        }
    }

    @Test
    func `a change that a standby refuses is sent to the writer, and the next change directly to the writer`()
        async throws
    {
        let transactions = RecordedList<String>()
        try await with(
            { _, _ throws(RPCError) in throw Self.standby },
            { request, _ in
                transactions.add(request.params["transaction"]?.stringValue ?? "")
                return Reply(PerformChanges.Result(token: token(5), isChanged: true).json)
            }
        ) { library async throws in
            for transaction in ["t1", "t2"] {
                #expect(try await library.perform([change], transaction: transaction).sequence == 5)
            }
            #expect(transactions.all == ["t1", "t2"])
            #expect(requests.all == ["one changes.perform", "two changes.perform", "two changes.perform"])
        }
    }

    @Test func `a change waits for a takeover while all catalogs are standbys, and is refused after its deadline`()
        async throws
    {
        let refusals = RecordedList<Int>()
        let script: ScriptedHandler.Script = { _, _ throws(RPCError) in
            guard refusals.add(1) > 6 else { throw Self.standby }
            return Reply(PerformChanges.Result(token: token(5), isChanged: true).json)
        }
        try await with(script, script) { library async throws in
            #expect(try await library.perform([change]).sequence == 5)
        }
        try await with(
            { _, _ throws(RPCError) in throw Self.standby },
            { _, _ throws(RPCError) in throw Self.standby }
        ) { library async throws in
            let error = await #expect(throws: RPCError.self) {
                try await library.perform([change], deadline: .milliseconds(400))
            }
            #expect(error?.isOfStandby == true, "\(error?.message ?? "")")
        }
    }

    @Test
    func `a change is repeated at the other catalog if the writer does not answer health requests`()
        async throws
    {
        let transactions = RecordedList<String>()
        try await with(
            { request, context throws(RPCError) in
                transactions.add(request.params["transaction"]?.stringValue ?? "")
                return try await Self.unresponsive(request, context)
            },
            { request, _ in
                transactions.add(request.params["transaction"]?.stringValue ?? "")
                return Reply(PerformChanges.Result(token: token(5), isChanged: true).json)
            }
        ) { library async throws in
            #expect(try await library.perform([change], transaction: "t").sequence == 5)
            #expect(transactions.all.filter { !$0.isEmpty } == ["t", "t"])
        }
    }

    @Test func `a change is repeated at another catalog if the first cannot reach its database`() async throws {
        let transactions = RecordedList<String>()
        let script: @Sendable (Int64) -> ScriptedHandler.Script = { sequence in
            { request, _ throws(RPCError) in
                transactions.add(request.params["transaction"]?.stringValue ?? "")
                if sequence == 5, transactions.all.count > 1 { throw ErrorCode.libraryOffline.error("no database") }
                return Reply(PerformChanges.Result(token: token(sequence), isChanged: true).json)
            }
        }
        try await with(script(5), script(6)) { library async throws in
            #expect(try await library.perform([change], transaction: "t1").sequence == 5)
            let error = await #expect(throws: RPCError.self) { try await library.perform([change], transaction: "t2") }
            #expect(error?.errorCode == .libraryOffline)
            #expect(try await library.perform([change], transaction: "t2").sequence == 6)
            #expect(transactions.all == ["t1", "t2", "t2"])
        }
    }

    @Test func `bytes that one catalog does not have are requested from the other one`() async throws {
        try await with(
            { _, _ throws(RPCError) in throw ErrorCode.networkAccessRequired.error("the bytes are remote") },
            { _, _ throws(RPCError) in throw ErrorCode.missingResource.error("the bytes are missing") }
        ) { library async throws in
            let error = await #expect(throws: RPCError.self) {
                try await library.catalog.read(ReadResource(asset: assetID(1), type: .photo)) { _ in }
            }
            // The error is that of the first catalog.
            #expect(error?.errorCode == .networkAccessRequired)
            #expect(requests.all == ["one resource.read", "two resource.read"])
        }
    }
}
