import Basics
import Contracts
import Foundation
import GRDB
import PhotoModel
import Storage
import TestSupport
import Testing

@testable import Catalog

/// Tests of the rules of upload jobs (T-34), and of their states in the database.
@Suite(.timeLimit(.minutes(1)))
struct UploadJobStoreTests {
    private static func subject(_ letter: Character) throws -> UploadJobStore.Subject {
        UploadJobStore.Subject(
            asset: try #require(ObjectID("a" + String(repeating: "0", count: 26))),
            resourceType: .photo,
            digest: try #require(ResourceDigest(String(repeating: letter, count: 64))),
            isDone: false
        )
    }

    /// Runs a body with the two tables of jobs.
    private func with(_ body: (UploadJobStore, UploadStateStore) throws -> Void) throws {
        try DatabaseQueue().write { database in
            try database.execute(sql: UploadStateStore.schema)
            try database.execute(sql: UploadJobStore.schema)
            try database.execute(sql: UploadJobStore.versions)
            try database.execute(sql: UploadStateStore.addAgainColumn)
            try database.execute(sql: UploadJobStore.addOnlyKeys)
            let connection = SQLConnection(database)
            try body(UploadJobStore(database: connection), UploadStateStore(database: connection))
        }
    }

    @Test(arguments: UploadJob.State.allCases)
    func `each state allows the actions that PhotoKit documents`(state: UploadJob.State) {
        let job = UploadJob(id: 1, asset: .none, state: state)
        let retried = UploadJob(id: 1, asset: .none, state: state, isRetried: true)
        #expect(job.allows(.retry) == (state == .failed) && !retried.allows(.retry))
        #expect(job.allows(.acknowledge) == [.failed, .succeeded, .cancelled].contains(state))
        #expect(job.allows(.cancel) == [.registered, .pending].contains(state))
    }

    @Test func `a version from before the library was restored gets all jobs and the version of the library`()
        async throws
    {
        let folder = try TemporaryFolder("restored-jobs")
        try await CatalogFixture.with(folder) { catalog in
            let subject = try Self.subject("a")
            let created = try await catalog.service.store.changeUploadJobs {
                try $0.create(.upload, [subject], for: "uid:1", date: 1)
            }
            let all = try await catalog.call(ListUploadJobs())
            let page = try await catalog.call(ListUploadJobs(changedAfter: 5000))
            #expect(page.jobs.map(\.id) == created?.map(\.id))
            #expect(page.version == all.version)
        }
    }

    @Test func `an upload job ends with the upload of its bytes`() throws {
        try with { jobs, objects in
            let subject = try Self.subject("a")
            let created = try #require(try jobs.create(.upload, [subject, Self.subject("b")], for: "a", date: 1))
            #expect(created.map(\.state) == [.registered, .registered])
            try objects.confirm(subject.digest, size: 10, date: 2)
            try objects.fail(Self.subject("b").digest, problem: "file_damaged", message: "m", date: 3, maxAttempts: 1)
            let ended = try jobs.all()
            #expect(ended.map(\.state) == [.succeeded, .failed] && ended.map(\.date) == [2, 3])
            #expect(ended[1].problem == "file_damaged")
            // The object store has the bytes already.
            #expect(try jobs.create(.upload, [subject], for: "a", date: 4)?.first?.state == .succeeded)
        }
    }

    @Test func `a retried job ends at once if its bytes were uploaded meanwhile`() throws {
        try with { jobs, objects in
            let subject = try Self.subject("a")
            _ = try jobs.create(.upload, [subject], for: "a", date: 1)
            try objects.fail(subject.digest, problem: "file_damaged", message: "m", date: 2, maxAttempts: 1)
            #expect(try objects.retryFailed() == 1)
            try objects.confirm(subject.digest, size: 10, date: 3)
            #expect(try jobs.all().map(\.state) == [.failed])
            try jobs.update(try jobs.all(), .retry, date: 4)
            let retried = try jobs.all()
            #expect(retried.map(\.state) == [.succeeded] && retried[0].isRetried && retried[0].problem == nil)
        }
    }

    @Test func `a retried job waits for the next upload of its bytes`() throws {
        try with { jobs, objects in
            let subject = try Self.subject("a")
            _ = try jobs.create(.upload, [subject], for: "a", date: 1)
            try objects.fail(subject.digest, problem: "file_damaged", message: "m", date: 2, maxAttempts: 1)
            try jobs.update(try jobs.all(), .retry, date: 3)
            #expect(try jobs.all().map(\.state) == [.registered])
            #expect(try objects.registered(after: nil, limit: 9) == [subject.digest])
            try objects.fail(subject.digest, problem: "file_damaged", message: "m", date: 4, maxAttempts: 1)
            let failed = try jobs.all()
            #expect(failed.map(\.state) == [.failed] && failed.allSatisfy { !$0.allows(.retry) })
        }
    }

    @Test func `bytes that are referred to again after an interrupted deletion are uploaded again`() throws {
        try with { jobs, objects in
            try objects.database.run(
                once: """
                    CREATE TABLE resource (digest BLOB NOT NULL);
                    CREATE TABLE kept_adjustment (digest BLOB NOT NULL);
                    """
            )
            let (needed, other) = (try Self.subject("a").digest, try Self.subject("b").digest)
            _ = try jobs.create(.upload, [Self.subject("a"), Self.subject("b")], for: "a", date: 1)
            for digest in [needed, other] { #expect(try objects.beginDeleting(digest)) }
            #expect(try objects.registerReferenced() == 0)
            try objects.database.run("INSERT INTO resource VALUES (?)", needed.bytes)
            #expect(try objects.registerReferenced() == 1)
            #expect(try objects.registered(after: nil, limit: 9) == [needed])
            #expect(try objects.counts().deleting == 1)
        }
    }

    @Test func `bytes that another bucket has to confirm can be read meanwhile, unless it lacks them`() throws {
        try with { jobs, objects in
            try objects.database.run(once: "CREATE TABLE resource (digest BLOB NOT NULL)")
            let (stored, new) = (try Self.subject("a"), try Self.subject("b"))
            try objects.begin("s3://one")
            _ = try jobs.create(.upload, [stored, new], for: "a", date: 1)
            try objects.confirm(stored.digest, size: 10, date: 2)
            try objects.begin("s3://two")
            #expect(try objects.registered(after: nil, limit: 9) == [stored.digest, new.digest])
            #expect(try objects.remoteSize(of: stored.digest) == nil)
            #expect(try objects.readableSize(of: stored.digest) == 10 && objects.readableSize(of: new.digest) == nil)
            try objects.fail(stored.digest, problem: "no_object", message: "m", date: 3, maxAttempts: 1)
            #expect(try objects.readableSize(of: stored.digest) == nil)
        }
    }

    @Test func `attempts before bytes were confirmed do not count after the object store has lost them`() throws {
        try with { jobs, objects in
            let subject = try Self.subject("a")
            _ = try jobs.create(.upload, [subject], for: "a", date: 1)
            try objects.fail(subject.digest, problem: "object_damaged", message: "m", date: 2, maxAttempts: 2)
            try objects.confirm(subject.digest, size: 10, date: 3)
            try objects.registerLost(subject.digest)
            try objects.fail(subject.digest, problem: "object_damaged", message: "m", date: 4, maxAttempts: 2)
            #expect(try objects.registered(after: nil, limit: 9) == [subject.digest])
            try objects.fail(subject.digest, problem: "object_damaged", message: "m", date: 5, maxAttempts: 2)
            #expect(try objects.registered(after: nil, limit: 9).isEmpty)
        }
    }

    @Test func `unreferenced bytes are listed in the order of their digests, also on a server`() async throws {
        let folder = try TemporaryFolder("unreferenced")
        let store = try LibraryStore(
            folder: folder.path,
            server: try PostgreSQLServer.shared().address(library: folder.path),
            now: 1,
            newHistoryID: String(repeating: "a", count: 32),
            logger: CatalogFixture.logger
        )
        defer { try? store.close() }
        let digests = try "fedcba".map { try Self.subject($0).digest }
        try await store.changeUploadStates { try $0.setKept(false, digests) }
        let found = try await store.read { try $0.uploadStates.unreferenced(limit: 3) }
        #expect(found == Array(digests.reversed().prefix(3)))
    }

    @Test func `no job is created above the limit`() throws {
        try with { jobs, _ in
            let subject = try Self.subject("a")
            let all = Array(repeating: subject, count: UploadJob.limit)
            #expect(try jobs.create(.upload, all, for: "a", date: 1)?.count == UploadJob.limit)
            #expect(try jobs.create(.upload, [subject], for: "a", date: 2) == nil)
            try jobs.update(Array(try jobs.all().prefix(1)), .acknowledge, date: 3)
            #expect(try jobs.create(.upload, [subject, subject], for: "a", date: 4) == nil)
            #expect(try jobs.create(.upload, [subject], for: "a", date: 5)?.count == 1)
            #expect(try jobs.create(.upload, [subject], for: "b", date: 6)?.count == 1)
            for identity in "cdefghijk" { _ = try jobs.create(.upload, all, for: "\(identity)", date: 7) }
            // The limit of all identities together.
            #expect(try jobs.count() <= UploadJob.totalLimit)
            let left = try jobs.capacity(of: "l")
            #expect(left == UploadJob.totalLimit - (try jobs.count()) && left < UploadJob.limit)
            #expect(try jobs.create(.upload, all, for: "l", date: 8) == nil)
        }
    }

    @Test(.spec("T-40")) func `bytes that are sent again end the jobs for them, and are confirmed once more`() throws {
        try with { jobs, objects in
            let (stored, new) = (try Self.subject("a"), try Self.subject("b"))
            _ = try jobs.create(.upload, [stored, new], for: "a", date: 1)
            try objects.confirm(stored.digest, size: 10, date: 2)
            let digests = [stored.digest, new.digest]
            try objects.uploadAgain(digests)
            // Bytes that are being uploaded for the first time are not sent again.
            #expect(try objects.repeated(digests) == [stored.digest])
            #expect(try objects.registered(after: nil, limit: 9) == digests)
            #expect(try objects.remoteSize(of: stored.digest) == nil)
            #expect(
                try jobs.create(.upload, [stored, new], for: "b", date: 3)?.map(\.state) == [.registered, .registered]
            )
            try objects.confirm(stored.digest, size: 10, date: 4)
            #expect(try objects.repeated(digests).isEmpty && objects.remoteSize(of: stored.digest) == 10)
            #expect(try jobs.all(of: .init("b")).map(\.state) == [.succeeded, .registered])
            // Bytes whose upload had failed are sent too.
            try objects.fail(new.digest, problem: "file_damaged", message: "m", date: 5, maxAttempts: 1)
            try objects.uploadAgain(digests)
            #expect(try objects.repeated(digests) == Set(digests))
        }
    }

    @Test(.spec("T-40")) func `the jobs of an add-only client are those that it has created with its key`() throws {
        try with { jobs, objects in
            let (firstSubject, secondSubject) = (try Self.subject("a"), try Self.subject("b"))
            let mine = UploadJobStore.Filter(AddOnlyClient(identity: "a", key: "K"))
            _ = try jobs.create(.upload, [firstSubject], for: "a", date: 1)
            _ = try jobs.create(.upload, [firstSubject], for: "a", addOnlyKey: "L", date: 1)
            _ = try jobs.create(.upload, [firstSubject], for: "b", addOnlyKey: "K", date: 1)
            #expect(try jobs.all(of: mine).isEmpty && jobs.version(of: mine) == 0)
            _ = try jobs.create(.upload, [secondSubject], for: "a", addOnlyKey: "K", date: 1)
            let version = try jobs.version(of: mine)
            #expect(try jobs.all(of: mine).map(\.id) == [4] && jobs.all(of: .init("a")).map(\.id) == [1, 2, 4])
            try jobs.setUploading(true, [firstSubject.digest], date: 2)
            #expect(try jobs.version(of: mine) == version && jobs.version(of: nil) > version)
            #expect(try jobs.changed(after: version, limit: 9, of: mine) == nil && jobs.pending(of: mine).isEmpty)
            try jobs.setUploading(true, [secondSubject.digest], date: 2)
            let changed = try #require(try jobs.changed(after: version, limit: 9, of: mine))
            #expect(changed.jobs.map(\.id) == [4] && changed.version > version)
            #expect(try jobs.pending(of: mine).map(\.id) == [4] && jobs.pending().count == 4)
        }
    }

    @Test func `the waiting requests of one identity do not block the requests of another identity`() async {
        let changes = UploadJobChanges()
        let (begun, beginning) = AsyncStream.makeStream(of: Void.self)
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<UploadJobChanges.maxWaiters {
                group.addTask {
                    _ = try? await changes.answer(for: "a", within: 600_000_000, .system) { _ -> Int? in
                        beginning.yield()
                        return nil
                    }
                }
            }
            var waiting = 0
            for await _ in begun {
                waiting += 1
                if waiting == UploadJobChanges.maxWaiters { break }
            }
            await #expect(throws: (any Error).self) {
                try await changes.answer(for: "a", within: 0, .system) { _ -> Int? in 1 }
            }
            let other = try? await changes.answer(for: "b", within: 0, .system) { _ -> Int? in 1 }
            #expect(other == 1)
            group.cancelAll()
        }
    }

    @Test func `each change of a state has a version, and pages of changes follow each other`() throws {
        try with { jobs, objects in
            let start = try jobs.version()
            let (firstSubject, secondSubject) = (try Self.subject("a"), try Self.subject("b"))
            _ = try jobs.create(.upload, [firstSubject, secondSubject], for: "a", date: 1)
            let first = try #require(try jobs.changed(after: start, limit: 1))
            let second = try #require(try jobs.changed(after: first.version, limit: 9))
            #expect(first.jobs.map(\.id) == [1] && second.jobs.map(\.id) == [2])
            #expect(try second.version == jobs.version() && jobs.changed(after: second.version, limit: 9) == nil)
            try jobs.setUploading(true, [firstSubject.digest], date: 2)
            #expect(try jobs.pending().map(\.id) == [1])
            try objects.confirm(firstSubject.digest, size: 10, date: 3)
            // Both changes of its state are one entry with the newest state.
            let third = try #require(try jobs.changed(after: second.version, limit: 9))
            #expect(third.jobs.map(\.state) == [.succeeded] && third.version == second.version + 2)
            try jobs.setUploading(true, [firstSubject.digest, secondSubject.digest], date: 4)
            try jobs.setUploading(false, [firstSubject.digest, secondSubject.digest], date: 5)
            #expect(try jobs.all().map(\.state) == [.succeeded, .registered])
        }
    }
}
