import Foundation
import PhotoClient
import TestSupport

/// A change-broker that follows the one of the services.
final class ChainedBroker: Sendable {
    private let folder: TemporaryFolder
    private let services: SafelightFixture
    private let program: AwaitableValue<RunningProgram?>

    init(_ services: SafelightFixture) throws {
        folder = try TemporaryFolder("chained")
        self.services = services
        program = AwaitableValue(nil)
        try start()
    }

    var feed: String { "ipc://\(folder.file("feed.sock"))" }

    /// The variables that connect programs to the services with this broker.
    var environment: [String: String] {
        services.environment.merging([
            "SAFELIGHT_BROKER": "ipc://\(folder.file("broker.sock"))", "SAFELIGHT_FEED": feed,
        ]) { $1 }
    }

    /// Returns a client of the services with this broker.
    func library() throws -> PhotoLibrary { try NetworkFixture.library(variables: environment) }

    func start() throws {
        let upstream = "ipc://\(services.folder.file("run"))/change-broker.sock"
        let started = try RunningProgram(
            "change-broker",
            ["--ready-fd", "1", "--upstream", upstream],
            environment: environment
        )
        guard started.waitForOutput("ready") else { throw FixtureError(description: started.errorText) }
        program.withLock { $0 = started }
    }

    func killHard() { program.withLock { $0?.killHard() } }

    /// Stops the change-broker.
    ///
    /// - Returns: its exit status
    func stop() -> Int32? {
        program.withLock { program in
            program?.signal(SIGTERM)
            return program?.wait(seconds: 20)
        }
    }
}
