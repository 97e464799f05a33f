import Foundation
import PhotoClient
import TestSupport
import Testing

/// The services as `safelight up` runs them, with a bound on the time of a restart.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct SupervisorTests {
    @Test func `safelight up starts the four services, restarts one that dies and stops all`() async throws {
        let services = try SafelightFixture("up")
        let up = try RunningProgram("safelight", ["up", "--ready-fd", "1"], environment: services.environment)
        #expect(up.waitForOutput("ready"), "\(up.errorText)")
        let library = try services.library()
        let before = try #require(try await library.thumbnailer.processIdentifier(deadline: .seconds(30)))
        kill(before, SIGKILL)
        let start = Date()
        var after: Int32?
        while after == nil || after == before {
            after = try? await library.thumbnailer.processIdentifier()
            if Date().timeIntervalSince(start) > 20 { break }
        }
        #expect(after != nil && after != before)
        #expect(Date().timeIntervalSince(start) < 5)
        await library.close()
        up.signal(SIGINT)
        #expect(up.wait(seconds: 20) == 0, "\(up.errorText)")
    }
}
