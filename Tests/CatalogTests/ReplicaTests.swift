import Basics
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoModel
import PostgreSQL
import TestSupport
import Testing

@testable import Catalog

/// Tests of reads from a streaming replica of PostgreSQL, by a standby catalog and by the one that writes.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct ReplicaTests {
    let folder: TemporaryFolder
    let primary: PostgreSQLServer
    let replica: PostgreSQLServer

    init() throws {
        folder = try TemporaryFolder("replica")
        primary = try PostgreSQLServer()
        replica = try PostgreSQLServer(replicaOf: primary)
        // A commit waits until the replica has it on its disk, but not until it has replayed it.
        let connection = try PostgreSQLConnection(primary.address)
        try connection.execute(script: "ALTER SYSTEM SET synchronous_standby_names = '*'")
        _ = try connection.execute("SELECT pg_reload_conf()")
    }

    private func configure(_ configuration: inout CatalogConfiguration) {
        configuration.server = primary.address(with: replica) + "&target_session_attrs=read-write"
        configuration.replica = replica.address
    }

    /// Runs two catalogs that read from the replica; the first one writes.
    private func withTwo(_ body: (CatalogFixture, CatalogFixture) async throws -> Void) async throws {
        try await withTwo(configure, body)
    }

    private func withTwo(
        _ configure: (inout CatalogConfiguration) -> Void,
        _ body: (CatalogFixture, CatalogFixture) async throws -> Void
    ) async throws {
        let other = try TemporaryFolder("replica")
        try await CatalogFixture.with(folder) {
            configure(&$0)
        } _: { first in
            try await CatalogFixture.with(other) {
                configure(&$0)
            } _: { second in
                try await body(first, second)
            }
        }
    }

    private func albums(
        _ catalog: CatalogFixture,
        atLeast token: ChangeToken? = nil,
        deadline: Duration = .seconds(30)
    ) async throws -> FetchCollections.Result {
        var fetch = FetchDescription(.collections)
        fetch.collectionType = "album"
        let request = FetchCollections(fetch: fetch, count: 1000, atLeast: token)
        let reply = try await catalog.client.call(FetchCollections.method, request.json, deadline: deadline)
        return try FetchCollections.Result(json: reply.result)
    }

    private func metric(_ catalog: CatalogFixture, _ name: String) -> JSON? {
        catalog.service.store.database.metrics["replica"]?[name]
    }

    /// Repeats a call until it returns a value.
    @discardableResult
    private func awaitValue<Value>(_ body: () async throws -> Value?) async throws -> Value {
        while true {
            if let value = try await body() { return value }
            try await Task.sleep(for: .milliseconds(50))
        }
    }

    private func run(_ sql: String, on server: PostgreSQLServer) throws {
        _ = try PostgreSQLConnection(server.address).execute(sql)
    }

    /// Lets the replica continue, and waits until a catalog reads there.
    private func resumeReplica(of catalog: CatalogFixture) async throws {
        try run("SELECT pg_wal_replay_resume()", on: replica)
        try await awaitValue { [self] in
            _ = try await albums(catalog)
            return metric(catalog, "isUsed") == .bool(true) ? true : nil
        }
    }

    @Test func `a standby reads each change from the replica, with a token and without`() async throws {
        try await withTwo { writer, standby in
            for index in 0..<200 {
                let result = try await writer.perform([.createCollection(.init(title: "\(index)"))])
                // Without a token: the change was acknowledged before the read began.
                let found = try await albums(standby, atLeast: index % 2 == 0 ? result.token : nil)
                #expect(found.token == result.token && found.collections.count == index + 1)
            }
            #expect(metric(standby, "reads")?.intValue ?? 0 >= 200)
            #expect(metric(standby, "readsAtPrimary")?.intValue == 0)
            #expect(metric(writer, "reads")?.intValue == 0)
        }
    }

    @Test
    func `while the replica does not replay, reads go to the primary server, and later to the replica again`()
        async throws
    {
        try await withTwo { writer, standby in
            try run("SELECT pg_wal_replay_pause()", on: replica)
            let result = try await writer.perform([.createCollection(.init(title: "one"))])
            #expect(try await albums(standby).token == result.token)
            #expect(try await albums(standby, atLeast: result.token).collections.map(\.title) == ["one"])
            #expect(metric(standby, "isUsed") == .bool(false))
            try await resumeReplica(of: standby)
            let before = metric(standby, "reads")?.intValue ?? 0
            #expect(try await albums(standby).token == result.token)
            #expect(metric(standby, "reads")?.intValue ?? 0 > before)
        }
    }

    @Test func `a standby starts and reads while the replica does not have the library yet`() async throws {
        try run("SELECT pg_wal_replay_pause()", on: replica)
        try await withTwo { writer, standby in
            let result = try await writer.perform([.createCollection(.init(title: "one"))])
            #expect(try await albums(standby, atLeast: result.token).collections.map(\.title) == ["one"])
            #expect(metric(standby, "isUsed") == .bool(false))
            try await resumeReplica(of: standby)
        }
    }

    @Test func `without the primary server a read waits for the replica and fails as behind`() async throws {
        try await withTwo { writer, standby in
            try run("SELECT pg_wal_replay_pause()", on: replica)
            let result = try await writer.perform([.createCollection(.init(title: "one"))])
            try primary.kill()
            for catalog in [writer, standby] {
                let error = await rpcError { try await albums(catalog, atLeast: result.token, deadline: .seconds(2)) }
                #expect(error?.errorCode == .behind, "\(error?.message ?? "it was answered")")
            }
            async let waiting = albums(standby, atLeast: result.token)
            try run("SELECT pg_wal_replay_resume()", on: replica)
            #expect(try await waiting.collections.map(\.title) == ["one"])
            #expect(try await albums(writer, atLeast: result.token).token == result.token)
            // The change log is available too.
            #expect(try await standby.history().map(\.sequence) == Array(1...result.sequence))
        }
    }

    /// Returns the result of work and the seconds that it took.
    private func measure<Value>(_ body: () async throws -> Value) async rethrows -> (value: Value, seconds: Double) {
        let start = ContinuousClock.now
        let value = try await body()
        return (value, (ContinuousClock.now - start) / .seconds(1))
    }

    /// Expects that reads were answered soon: two missing replies cost 0.3 s each. The limit of the median is lower
    /// than that of each read, because other tests may keep the machine busy.
    private func expectPrompt(_ seconds: [Double]) {
        #expect(seconds.sorted()[seconds.count / 2] < 1.5, "\(seconds)")
        #expect(seconds.allSatisfy { $0 < 4 }, "\(seconds)")
    }

    @Test func `reads continue without delay when the primary server or the replica is suspended`() async throws {
        try await withTwo { writer, standby in
            let result = try await writer.perform([.createCollection(.init(title: "one"))])
            for catalog in [writer, standby] { #expect(try await albums(catalog).token == result.token) }
            for server in [primary, replica] {
                try server.suspend()
                defer { try? server.suspend(false) }
                var seconds: [Double] = []
                for _ in 0..<3 {
                    for catalog in [writer, standby] {
                        let read = try await measure { try await albums(catalog, deadline: .seconds(10)) }
                        #expect(read.value.token == result.token)
                        // A client that names an acknowledged change reads it.
                        let own = try await measure {
                            try await albums(catalog, atLeast: result.token, deadline: .seconds(10))
                        }
                        #expect(own.value.token == result.token)
                        seconds += [read.seconds, own.seconds]
                    }
                }
                expectPrompt(seconds)
                let later = ChangeToken(library: result.token.library, sequence: result.sequence + 1)
                let error = await rpcError { try await albums(standby, atLeast: later, deadline: .seconds(2)) }
                let refusals: [ErrorCode] = [.behind, .deadlineExceeded]
                #expect(error?.errorCode.map(refusals.contains) == true, "\(error?.message ?? "it was answered")")
            }
        }
    }

    @Test
    func `a token newer than the replica is refused as behind while the primary server is down, otherwise as expired`()
        async throws
    {
        try await withTwo { writer, standby in
            let result = try await writer.perform([.createCollection(.init(title: "one"))])
            _ = try await albums(standby)
            // The token of a client that has made a change through another catalog.
            let newer = ChangeToken(library: result.token.library, sequence: result.sequence + 1)
            func code(_ catalog: CatalogFixture, follows: Bool) async -> ErrorCode? {
                await rpcError {
                    if follows { return try await catalog.call(ChangesFollow(token: newer)).json }
                    return JSON.string(try await catalog.call(ChangesSince(token: newer, limit: 10)).token.description)
                }?.errorCode
            }
            for catalog in [writer, standby] {
                for follows in [false, true] { #expect(await code(catalog, follows: follows) == .tokenExpired) }
            }
            try primary.kill()
            for catalog in [writer, standby] {
                for follows in [false, true] { #expect(await code(catalog, follows: follows) == .behind) }
            }
        }
    }

    @Test func `a catalog that starts without the primary server reads from the replica, and writes after its restart`()
        async throws
    {
        let result = try await CatalogFixture.with(folder) {
            configure(&$0)
        } _: { catalog in
            try await catalog.perform([.createCollection(.init(title: "one"))])
        }
        try primary.kill()
        try await CatalogFixture.with(folder) {
            configure(&$0)
        } _: { catalog in
            let found = try await awaitValue { [self] in
                let found = try await albums(catalog)
                return found.token == result.token ? found : nil
            }
            #expect(found.collections.map(\.title) == ["one"])
            let refused = await rpcError { try await catalog.perform([.createCollection(.init(title: "no"))]) }
            #expect(refused?.errorCode == .libraryReadOnly, "\(refused?.message ?? "it was performed")")
            try primary.restart()
            let next = try await awaitValue { () async throws -> PerformChanges.Result? in
                try? await catalog.perform([.createCollection(.init(title: "two"))])
            }
            #expect(next.sequence == result.sequence + 1)
            #expect(try await albums(catalog, atLeast: next.token).collections.count == 2)
            #expect(catalog.service.store.database.metrics["synchronousStandbys"] == "*")
        }
    }

    @Test func `while only the replica answers the library is readable but not writable`() async throws {
        try await CatalogFixture.with(folder) {
            configure(&$0)
        } _: { catalog in
            _ = try await catalog.perform([.createCollection(.init(title: "one"))])
            #expect(try await catalog.call(LibraryStatus()).state == .available)
            try primary.kill()
            let status = try await awaitValue { () async throws -> LibraryStatus.Result? in
                let status = try await catalog.call(LibraryStatus())
                return status.state == .available ? nil : status
            }
            #expect(status.state == .readOnly && status.isReadable && !status.isWritable, "\(status)")
            #expect(status.problems.first?.message.contains("database server") == true, "\(status)")
            #expect(try await albums(catalog).collections.map(\.title) == ["one"])
            // Clients with a list of catalogs ask the next one.
            let refused = await rpcError { try await catalog.perform([.createCollection(.init(title: "no"))]) }
            #expect(refused?.errorCode == .libraryReadOnly && refused?.data["standby"] == true, "\(refused as Any)")
            try replica.kill()
            try await awaitValue { () async throws -> Bool? in
                try await catalog.call(LibraryStatus()).state == .offline ? true : nil
            }
            // Commits wait for the replica.
            try replica.restart()
            try primary.restart()
            try await awaitValue { () async throws -> Bool? in
                try await catalog.call(LibraryStatus()).state == .available ? true : nil
            }
        }
    }

    @Test
    func `reads continue when the primary server is killed, and changes after the replica is promoted`() async throws {
        try await withTwo { writer, standby in
            var last = try await writer.perform([.createCollection(.init(title: "0"))])
            let isDone = AwaitableValue(false)
            try await withThrowingTaskGroup(of: Int.self) { group in
                for catalog in [writer, standby] {
                    group.addTask { [self] in
                        var (reads, newest) = (0, Int64(0))
                        while !isDone.withLock({ $0 }) {
                            let found = try await albums(catalog).token.sequence
                            #expect(found >= newest)
                            (reads, newest) = (reads + 1, found)
                        }
                        return reads
                    }
                }
                defer { isDone.withLock { $0 = true } }
                for index in 1...50 { last = try await writer.perform([.createCollection(.init(title: "\(index)"))]) }
                try primary.kill()
                var refused: RPCError?
                for catalog in [writer, standby] {
                    refused = await rpcError { try await catalog.perform([.createCollection(.init(title: "no"))]) }
                    let code = refused?.errorCode
                    #expect(code == .libraryReadOnly || code == .libraryOffline, "\(refused?.message ?? "")")
                }
                let found = try await albums(standby, atLeast: last.token)
                #expect(found.token == last.token && found.collections.count == 51)
                try run("SELECT pg_promote()", on: replica)
                let next = try await awaitValue { () async throws -> PerformChanges.Result? in
                    for catalog in [writer, standby] {
                        do {
                            return try await catalog.perform([.createCollection(.init(title: "after"))])
                        } catch let error as RPCError {
                            #expect([.libraryReadOnly, .libraryOffline].contains(error.errorCode), "\(error.message)")
                        }
                    }
                    return nil
                }
                #expect(next.sequence == last.sequence + 1)
                for catalog in [writer, standby] {
                    #expect(try await albums(catalog, atLeast: next.token).collections.count == 52)
                }
                isDone.withLock { $0 = true }
                for try await reads in group { #expect(reads > 20) }
            }
        }
    }

    @Test func `reads continue when the promoted replica is lost after the former primary server was started again`()
        async throws
    {
        let both = primary.address(with: replica)
        try await withTwo {
            $0.server = both + "&target_session_attrs=read-write"
            $0.replica = both + "&target_session_attrs=prefer-standby"
        } _: { first, second in
            var last = try await first.perform([.createCollection(.init(title: "0"))])
            for catalog in [first, second] { #expect(try await albums(catalog).token == last.token) }
            try primary.kill()
            try run("SELECT pg_promote()", on: replica)
            last = try await awaitValue { () async throws -> PerformChanges.Result? in
                for catalog in [first, second] {
                    if let result = try? await catalog.perform([.createCollection(.init(title: "1"))]) { return result }
                }
                return nil
            }
            try primary.follow(replica)
            // Waits at most 10 seconds until each catalog reads at the former primary server again.
            let end = ContinuousClock.now + .seconds(10)
            for catalog in [first, second] {
                while ContinuousClock.now < end, metric(catalog, "servers")?.arrayValue?.count != 1 {
                    #expect(try await albums(catalog).token == last.token)
                    try await Task.sleep(for: .milliseconds(50))
                }
            }
            try replica.suspend()
            defer { try? replica.suspend(false) }
            var seconds: [Double] = []
            for _ in 0..<10 {
                for catalog in [first, second] {
                    let read = try await measure { try await albums(catalog, deadline: .seconds(10)) }
                    #expect(read.value.token == last.token)
                    seconds.append(read.seconds)
                }
            }
            expectPrompt(seconds)
        }
    }
}
