import Foundation
import TestSupport
import Testing

/// Services that are asked to stop.
@Suite(.serialized, .timeLimit(.minutes(2)))
struct StopTests {
    @Test func `a catalog stops at once, though other services wait for its next event`() throws {
        let services = try SafelightFixture("stop")
        try services.start()
        let catalog = try #require(services.program(.catalog))
        // The requests of the other services wait for up to half a minute; each has sent one before it reports
        // readiness.
        for service in ["editor", "change-broker", "thumbnailer"] {
            #expect(try services.safelight(["status", service, "--wait", "20"]).status == 0)
        }
        let started = ContinuousClock.now
        catalog.signal(SIGTERM)
        #expect(catalog.wait(seconds: 30) == 0, "\(catalog.errorText)")
        #expect(ContinuousClock.now - started < .seconds(3))
        #expect(services.stop() == [])
    }
}
