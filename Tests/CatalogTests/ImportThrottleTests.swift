import ObjectStorage
import Testing

@testable import Catalog

@Suite(.timeLimit(.minutes(1)))
struct ImportThrottleTests {
    private static let slack: Int64 = 256 << 20

    private func throttle(_ policy: RemoteStorageOptions.Policy = .optimize) throws -> ImportThrottle {
        var options = RemoteStorageOptions(
            location: try ObjectStoreLocation(url: "s3://photos"),
            credentials: ObjectStoreCredentials(accessKey: "key", secret: "secret")
        )
        options.policy = policy
        options.localBytes = 1000
        return ImportThrottle(options)
    }

    /// Longer than the time limit of the tests.
    private var never: ContinuousClock.Instant { .now + .seconds(3600) }

    @Test func `an import is delayed while files beyond the budget and the slack are uploaded`() async throws {
        let throttle = try throttle()
        throttle.setWorking(true)
        throttle.arrived(Self.slack + 1000)
        await throttle.wait(until: never)
        throttle.arrived(1)
        let start = ContinuousClock.now
        await throttle.wait(until: start + .milliseconds(50))
        #expect(ContinuousClock.now - start >= .milliseconds(50))
        let delayed = Task { await throttle.wait(until: never) }
        throttle.left(1)
        await delayed.value
    }

    @Test func `an import is not delayed if nothing is uploaded or the files may stay`() async throws {
        let throttle = try throttle()
        throttle.arrived(Self.slack * 2)
        await throttle.wait(until: never)
        throttle.setWorking(true)
        let delayed = Task { await throttle.wait(until: never) }
        // As after a failure of the store.
        throttle.setWorking(false)
        await delayed.value
        let all = try self.throttle(.all)
        all.setWorking(true)
        all.arrived(Self.slack * 2)
        await all.wait(until: never)
    }

    @Test func `a listing replaces the count, with the bytes that arrived meanwhile`() async throws {
        let throttle = try throttle()
        throttle.setWorking(true)
        throttle.arrived(Self.slack * 2)
        throttle.beginListing()
        throttle.arrived(2000)
        throttle.endListing(Self.slack - 1000)
        await throttle.wait(until: never)
        throttle.arrived(1)
        let start = ContinuousClock.now
        await throttle.wait(until: start + .milliseconds(20))
        #expect(ContinuousClock.now - start >= .milliseconds(20))
    }
}
