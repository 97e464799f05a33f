import Basics
import Hosting
import ObjectStorage
import Storage
import TestSupport
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(1)))
struct ImportThrottleTests {
    private static let slack: Int64 = 256 << 20

    private func options(_ policy: RemoteStorageOptions.Policy = .optimize) throws -> RemoteStorageOptions {
        var options = RemoteStorageOptions(
            // No server listens at this address.
            location: try ObjectStoreLocation(url: "s3://photos", endpoint: "http://127.0.0.1:1"),
            credentials: ObjectStoreCredentials(accessKey: "key", secret: "secret")
        )
        options.policy = policy
        options.localBytes = 1000
        return options
    }

    private func throttle(_ policy: RemoteStorageOptions.Policy = .optimize) throws -> ImportThrottle {
        ImportThrottle(try options(policy))
    }

    /// A time after the time limit of the tests.
    private var never: ContinuousClock.Instant { .now + .seconds(3600) }

    @Test func `an import is delayed while files beyond the budget and the slack are uploaded`() async throws {
        let throttle = try throttle()
        throttle.setWorking(true)
        throttle.noteStored(Self.slack + 1000)
        await throttle.wait(until: never)
        throttle.noteStored(1)
        let start = ContinuousClock.now
        await throttle.wait(until: start + .milliseconds(50))
        #expect(ContinuousClock.now - start >= .milliseconds(50))
        let delayed = Task { await throttle.wait(until: never) }
        throttle.noteRemoved(1)
        await delayed.value
    }

    @Test func `an import is not delayed if nothing is uploaded or the files may stay`() async throws {
        let throttle = try throttle()
        throttle.noteStored(Self.slack * 2)
        await throttle.wait(until: never)
        throttle.setWorking(true)
        let delayed = Task { await throttle.wait(until: never) }
        // Uploads stop like this after a failure of the object store.
        throttle.setWorking(false)
        await delayed.value
        let all = try self.throttle(.all)
        all.setWorking(true)
        all.noteStored(Self.slack * 2)
        await all.wait(until: never)
    }

    @Test func `no local file is released while a backup suspends removals`() async throws {
        let fixture = try StoreFixture()
        let folder = try #require(fixture.folder)
        let resources = try ResourceStore(root: folder.file("resources"))
        let digest = try resources.put(bytes: [1, 2, 3]).digest
        try await fixture.store.changeUploadStates { objects in
            try objects.setKept(false, [digest])
            try objects.confirm(digest, size: 3, date: 1)
        }
        var options = try options()
        options.settings.attempts = 1
        options.localBytes = 2
        let remote = RemoteStorage(
            options,
            store: fixture.store,
            resources: resources,
            blockingIO: BlockingIOExecutor(),
            now: { 1 },
            logger: CatalogFixture.logger
        )
        await #expect(throws: ObjectStoreError.self) { try await remote.release(digest) }
        resources.suspendRemovals()
        defer { resources.resumeRemovals() }
        #expect(try await remote.release(digest) == nil)
        let evictor = LocalFileEvictor(remote, clock: .system)
        try await evictor.run()
        #expect(evictor.secondsUntilPass != nil && resources.contains(digest))
    }

    @Test func `a listing replaces the counted bytes, except those that arrived during the listing`() async throws {
        let throttle = try throttle()
        throttle.setWorking(true)
        throttle.noteStored(Self.slack * 2)
        throttle.beginListing()
        throttle.noteStored(2000)
        throttle.endListing(Self.slack - 1000)
        await throttle.wait(until: never)
        throttle.noteStored(1)
        let start = ContinuousClock.now
        await throttle.wait(until: start + .milliseconds(20))
        #expect(ContinuousClock.now - start >= .milliseconds(20))
    }
}
