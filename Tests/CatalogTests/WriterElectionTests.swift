import Basics
import Contracts
import Foundation
import JSONValue
import Logging
import PhotoModel
import PostgreSQL
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of several catalogs of one library on PostgreSQL, of which one writes.
@Suite(.timeLimit(.minutes(2)))
struct WriterElectionTests {
    let folder: TemporaryFolder

    init() throws { folder = try TemporaryFolder("election") }

    /// Runs two catalogs of one library; the first one writes.
    private func withTwo(_ body: (CatalogFixture, CatalogFixture) async throws -> Void) async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let other = try TemporaryFolder("election")
        try await CatalogFixture.with(folder) {
            $0.server = address
        } _: { writer in
            try await CatalogFixture.with(other) {
                $0.server = address
            } _: { standby in
                try await body(writer, standby)
            }
        }
    }

    private func store(_ folder: TemporaryFolder, _ address: String, history: Character) throws -> LibraryStore {
        try LibraryStore(
            folder: folder.path,
            server: address,
            now: 1,
            newHistoryID: String(repeating: history, count: 32),
            logger: CatalogFixture.logger
        )
    }

    /// Returns a follower whose head is a sequence of the history "a", and which ignores records.
    private func follower(head: Int64) -> WriterElection.Follower {
        WriterElection.Follower(
            historyID: String(repeating: "a", count: 32),
            head: { head },
            receive: { _, _ in },
            changed: { _ in },
            newHistoryID: { String(repeating: "b", count: 32) }
        )
    }

    @Test
    func `a standby answers reads, follows the writer, and refuses changes with the error libraryReadOnly`()
        async throws
    {
        try await withTwo { writer, standby in
            #expect(writer.service.store.election?.refusal == nil)
            #expect(standby.service.store.election?.refusal != nil)
            let result = try await writer.perform([.createCollection(.init(ref: "a", title: "one"))])
            // Waits until the standby has read the record.
            var fetch = FetchDescription(.collections)
            fetch.collectionType = "album"
            let found = try await standby.call(FetchCollections(fetch: fetch, atLeast: result.token))
            #expect(found.token == result.token)
            #expect(found.collections.map(\.title) == ["one"])
            #expect(standby.service.tail.head == result.sequence)
            // The next start of the standby detects if the server has lost changes that clients have read here.
            let readHead = HeadFile.Head(library: result.token.library, sequence: result.sequence)
            #expect(try standby.service.store.headFile.load() == readHead)
            let refused = await rpcError { try await standby.perform([.createCollection(.init(title: "two"))]) }
            #expect(refused?.errorCode == .libraryReadOnly && refused?.data["standby"] == .bool(true))
            #expect(refused?.message.contains("process \(getpid())") == true, "\(refused?.message ?? "")")
            #expect(try await writer.call(CurrentToken()).token == result.token)
            // Bytes that no transaction of this catalog can use are not accepted.
            let upload = await rpcError { try await standby.call(BeginUpload(size: 1)) }
            #expect(upload?.errorCode == .libraryReadOnly && upload?.data["standby"] == .bool(true))
            // Editors learn the states of edits from the writer, publishers from any catalog.
            let request = EditsStatus(ids: ["e"], onBehalfOf: "key:ann")
            let status = await rpcError { try await standby.call(request) }
            #expect(status?.errorCode == .libraryReadOnly && status?.data["standby"] == .bool(true))
            #expect(try await writer.call(request).unknown == ["e"])
            #expect(try await standby.call(EditsStatus(ids: ["e"])).unknown == ["e"])
            // A replica may not have this version of the jobs yet; only the writer is certain to have it.
            let jobs = await rpcError { try await standby.call(ListUploadJobs(changedAfter: 5000)) }
            #expect(jobs?.errorCode == .libraryReadOnly && jobs?.data["standby"] == .bool(true))
        }
    }

    @Test func `a standby takes over when the writer stops, and continues with the next sequence`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let other = try TemporaryFolder("election")
        let writer = try await CatalogFixture(folder) { $0.server = address }
        let first = try await writer.perform([.createCollection(.init(title: "one"))], transaction: "t1")
        try await CatalogFixture.with(other) {
            $0.server = address
        } _: { standby in
            let second = try await writer.perform([.createCollection(.init(title: "two"))], transaction: "t2")
            try await writer.stop()
            let election = try #require(standby.service.store.election)
            await election.waitUntilWriter()
            #expect(election.role == .writer(epoch: 2))
            // The outcomes of the previous catalog are known, and no transaction is performed twice.
            let repeated = try await standby.perform([.createCollection(.init(title: "two"))], transaction: "t2")
            #expect(repeated.sequence == second.sequence && first.sequence + 1 == second.sequence)
            let third = try await standby.perform([.createCollection(.init(title: "three"))])
            #expect(third.sequence == second.sequence + 1)
            #expect(try await standby.history().map(\.sequence) == Array(1...third.sequence))
        }
    }

    @Test func `a standby follows the writer's quarantine`() async throws {
        try await withTwo { writer, standby in
            let digest = String(repeating: "ab", count: 32)
            let quarantine = standby.service.handler.quarantine
            let fault = ReportWorkerFault(
                digest: digest,
                name: "worker_crashed",
                reason: "signal 11",
                service: "editor",
                failures: 2
            )
            #expect(try await writer.service.handler.quarantine.report(fault).isQuarantined)
            while quarantine.entry(digest) == nil { try await Task.sleep(for: .milliseconds(5)) }
            _ = try await writer.call(LiftQuarantine(digest: digest))
            while quarantine.entry(digest) != nil { try await Task.sleep(for: .milliseconds(5)) }
        }
    }

    @Test func `a catalog that does not know yet that another one has taken over cannot commit`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        try await CatalogFixture.with(folder) {
            $0.server = address
        } _: { catalog in
            let first = try await catalog.perform([.createCollection(.init(title: "one"))])
            // This is how another catalog takes over.
            let connection = try PostgreSQLConnection(address)
            _ = try connection.execute("UPDATE library SET epoch = epoch + 1")
            let refused = await rpcError { try await catalog.perform([.createCollection(.init(title: "late"))]) }
            #expect(refused?.errorCode == .libraryReadOnly, "\(refused?.message ?? "it was committed")")
            let late = try connection.execute("SELECT count(*) FROM collection WHERE title = 'late'").int64(0, 0)
            #expect(late == 0)
            let head = try connection.execute(HistoryStore.newestSequenceQuery).int64(0, 0)
            #expect(head == first.sequence)
            await #expect(throws: CatalogError.self) { try await catalog.service.store.remember(1, as: "probe") }
            // The failure is a problem of a catalog that writes, not of a standby.
            #expect(try await !catalog.call(Health()).isHealthy)
            try connection.execute(
                script: """
                    SELECT pg_terminate_backend(pid) FROM pg_locks
                    WHERE locktype = 'advisory' AND granted AND objid = 'library'::regclass::oid;
                    SELECT pg_advisory_lock(\(0x5AFE), 'library'::regclass::oid::integer)
                    """
            )
            while catalog.service.store.election?.refusal == nil {
                try await Task.sleep(for: .milliseconds(20))
            }
            let health = try await catalog.call(Health())
            #expect(health.isHealthy, "\(health.problems)")
        }
    }

    @Test
    func `a change that conflicts with one of the catalog that took over is refused as libraryReadOnly`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        try await CatalogFixture.with(folder) {
            $0.server = address
        } _: { catalog in
            _ = try await catalog.perform([.createCollection(.init(title: "one"))])
            // The other catalog commits after this one has read the newest sequence and before it commits.
            let connection = try PostgreSQLConnection(address)
            try connection.execute(script: "BEGIN; LOCK TABLE change IN EXCLUSIVE MODE")
            async let refused = rpcError { try await catalog.perform([.createCollection(.init(title: "late"))]) }
            let waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'change'::regclass AND NOT granted"
            while try connection.execute(waiting).int64(0, 0) == 0 {
                try await Task.sleep(for: .milliseconds(5))
            }
            try connection.execute(
                script: """
                    UPDATE library SET epoch = epoch + 1;
                    INSERT INTO change (sequence, date, library, size, record)
                        SELECT sequence + 1, date, library, size, record FROM change ORDER BY sequence DESC LIMIT 1;
                    COMMIT
                    """
            )
            let error = await refused
            #expect(error?.errorCode == .libraryReadOnly, "\(error?.message ?? "it was committed")")
            #expect(error?.data["standby"] == .bool(true))
        }
    }

    @Test func `the session of a writer that does not renew its date is ended by the next one`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        // A writer whose loop does not run, as if its process were stopped.
        let stopped = try store(folder, address, history: "a")
        defer { try? stopped.close() }
        try await stopped.remember(1, as: "probe")
        var limits = WriterElection.Limits()
        limits.expiry = 0.5
        let election = WriterElection(address, limits: limits)
        defer { election.close() }
        try election.open { _, isWriter in #expect(!isWriter) }
        let follower = follower(head: 0)
        let task = Task { try await election.run(follower) }
        await election.waitUntilWriter()
        #expect(election.role == .writer(epoch: 2))
        await #expect(throws: CatalogError.self) { try await stopped.remember(2, as: "probe") }
        task.cancel()
        try await task.value
    }

    @Test func `a standby that acknowledged a change before its start, which the server lost, begins another history`()
        async throws
    {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let writer = try store(folder, address, history: "a")
        // The second catalog wrote the changes up to 5, and was restarted with a replica that had not received them.
        let other = try TemporaryFolder("election")
        let configured = other.file("library")
        try FileManager.default.createDirectory(atPath: configured, withIntermediateDirectories: true)
        try HeadFile(path: configured + "/head").store(library: writer.historyID, sequence: 5)
        let error = await #expect(throws: StorageError.self) {
            try await CatalogFixture.with(other) {
                $0.server = address
            } _: { catalog in
                try writer.close()
                await catalog.end()
            }
        }
        #expect("\(error.map { "\($0)" } ?? "")".contains("the changes 1 to 5"))
        let after = try store(try TemporaryFolder("election"), address, history: "c")
        defer { try? after.close() }
        #expect(try await after.read { try $0.head() }.sequence == 5 + LibraryRestore.gap)
    }

    @Test func `a server that lost commits which a standby has read begins another history`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let before = try store(folder, address, history: "a")
        let election = WriterElection(address)
        try election.open { _, isWriter in #expect(!isWriter) }
        // This standby has read five changes of a server that no longer exists.
        let follower = follower(head: 5)
        try before.close()
        let error = await #expect(throws: StorageError.self) { try await election.run(follower) }
        #expect("\(error.map { "\($0)" } ?? "")".contains("the changes 1 to 5"))
        #expect(election.refusal != nil)
        election.close()
        let other = try TemporaryFolder("election")
        let after = try store(other, address, history: "c")
        defer { try? after.close() }
        let head = try await after.read { try $0.head() }
        let sequence = 5 + LibraryRestore.gap
        #expect(head == LibraryHead(library: String(repeating: "b", count: 32), sequence: sequence, oldest: sequence))
    }

    @Test func `no catalog uses tables whose library was moved to a file, even if it waited before`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let before = try store(folder, address, history: "a")
        let election = WriterElection(address)
        try election.open { _, isWriter in #expect(!isWriter) }
        try before.close()
        let other = try TemporaryFolder("election")
        let moved = try LibraryMigration.run(.toFile(from: address), folder: other.path, verifies: true) { _, _ in }
        let follower = follower(head: 0)
        let error = await #expect(throws: StorageError.self) { try await election.run(follower) }
        #expect("\(error.map { "\($0)" } ?? "")".contains("moved to a file"))
        election.close()
        // A catalog that checked the mark before it was set is refused too.
        let session = SQLConnection(PostgreSQLSession(address))
        let late = #expect(throws: StorageError.self) {
            try session.inImmediateTransaction { try WriterElection.noteWriter(session, 99, "late") }
        }
        #expect(late?.message.contains("moved to a file") == true)
        // A move that is repeated keeps the mark, also if it fails.
        try session.inImmediateTransaction { try WriterElection.noteWriter(session, 1, "again", allowsMoved: true) }
        #expect(throws: StorageError.self) { try WriterElection.requireNotMoved(session) }
        let newFolder = try TemporaryFolder("election")
        let refused = #expect(throws: StorageError.self) { try store(newFolder, address, history: "c") }
        #expect(refused?.message.contains("without --store") == true)
        // The move can be repeated, for example into another folder.
        let again = try LibraryMigration.run(.toFile(from: address), folder: newFolder.path, verifies: true) { _, _ in }
        #expect(again.token == moved.token)
        try PostgreSQLServer.execute("DELETE FROM safelight_writer", at: address)
        let after = try store(folder, address, history: "c")
        defer { try? after.close() }
        #expect(after.historyID == moved.token.library)
    }

    @Test func `a second catalog that has read lost commits does not take over with the old history`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let before = try store(folder, address, history: "a")
        let elections = [WriterElection(address), WriterElection(address)]
        for election in elections { try election.open { _, isWriter in #expect(!isWriter) } }
        try before.close()
        let follower = follower(head: 5)
        for election in elections {
            let error = await #expect(throws: StorageError.self) { try await election.run(follower) }
            #expect(error?.name == "resource_changed")
            #expect(election.refusal != nil)
            election.close()
        }
        let epoch = try PostgreSQLServer.text("SELECT epoch::text FROM library", at: address)
        #expect(epoch == "2", "only the first one has raised it")
    }

    @Test func `a waiting catalog reports a server that accepts no writes`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let before = try store(folder, address, history: "a")
        let election = WriterElection(address + "%20-cdefault_transaction_read_only%3Don")
        defer { election.close() }
        try election.open { _, isWriter in #expect(!isWriter) }
        try before.close()
        let follower = follower(head: 0)
        let task = Task { try await election.run(follower) }
        while election.connection != .readOnly { try await Task.sleep(for: .milliseconds(5)) }
        #expect(election.refusal != nil)
        task.cancel()
        try await task.value
    }

    @Test func `a loaded dump of the database begins another history, once`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        try store(folder, address, history: "a").close()
        // A dump contains the origin of its tables.
        try PostgreSQLServer.execute("UPDATE safelight_schema SET origin = '1 2 3'", at: address)
        for history: Character in ["b", "c"] {
            let other = try TemporaryFolder("election")
            let after = try store(other, address, history: history)
            let head = try await after.read { try $0.head() }
            #expect(head.library == String(repeating: "b", count: 32) && head.sequence == LibraryRestore.gap)
            try after.close()
        }
    }

    @Test func `a catalog does not take over a library whose smart albums have other rules before its next start`()
        async throws
    {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        let before = try store(folder, address, history: "a")
        let election = WriterElection(address)
        try election.open { _, isWriter in #expect(!isWriter) }
        try before.close()
        try PostgreSQLServer.execute("UPDATE counter SET value = 1 WHERE name = 'smart.rules'", at: address)
        let follower = follower(head: 0)
        let error = await #expect(throws: StorageError.self) { try await election.run(follower) }
        #expect("\(error.map { "\($0)" } ?? "")".contains("smart albums"))
        election.close()
        #expect(try PostgreSQLServer.text("SELECT epoch::text FROM library", at: address) == "1")
    }

    @Test func `a library on a server whose smart albums have other rules begins another history, once`() async throws {
        let address = try PostgreSQLServer.shared().address(library: folder.path)
        try store(folder, address, history: "a").close()
        try PostgreSQLServer.execute("UPDATE counter SET value = 1 WHERE name = 'smart.rules'", at: address)
        for history: Character in ["b", "c"] {
            let after = try store(folder, address, history: history)
            #expect(after.historyID == String(repeating: "b", count: 32))
            #expect(try await after.read { try $0.counter("smart.rules") } == SmartAlbum.rulesVersion)
            try after.close()
        }
    }
}
