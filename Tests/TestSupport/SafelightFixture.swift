import Contracts
import Foundation
import Logging
public import Messaging
public import PhotoClient
import Synchronization

/// The four services as real processes, with a folder of their own.
public final class SafelightFixture: Sendable {
    /// A service, by the name of its executable.
    public enum Service: String, CaseIterable, Sendable {
        case catalog
        case changeBroker = "change-broker"
        case thumbnailer
        case editor
    }

    /// The folder of the library, the sockets and the cache.
    public let folder: TemporaryFolder
    /// The variables that connect programs to these services.
    public let environment: [String: String]
    private let arguments: [Service: [String]]
    private let executables: String
    private let programs = Mutex<[Service: RunningProgram]>([:])

    /// Creates the folder and the environment; starts nothing.
    ///
    /// - Parameters:
    ///   - extra: variables that are added to those of the fixture, or replace them
    ///   - arguments: flags of single services
    ///   - executables: the folder of the services' executables; nil for those of this build
    public init(
        _ name: String = "services",
        environment extra: [String: String] = [:],
        arguments: [Service: [String]] = [:],
        executables: String? = nil
    ) throws {
        folder = try TemporaryFolder(name)
        self.arguments = arguments
        self.executables = executables ?? TestPaths.executables
        var environment = [
            "SAFELIGHT_RUN": folder.file("run"),
            "SAFELIGHT_LIBRARY": folder.file("library"),
            "SAFELIGHT_LOG": "info",
            "XDG_CACHE_HOME": folder.file("cache"),
            "XDG_STATE_HOME": folder.file("state"),
            "SAFELIGHT_STATE": folder.file("state"),
            "XDG_CONFIG_HOME": folder.file("config"),
            "PATH": self.executables + ":" + (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"),
        ]
        environment.merge(try TestStore.environment(library: folder.file("library"))) { $1 }
        environment.merge(extra) { $1 }
        self.environment = environment
    }

    /// Creates the services' library with generated assets, which have no pixels.
    ///
    /// - Parameter options: further options of `Benchmarks generate`
    public func generateLibrary(assets: Int, _ options: [String] = []) throws {
        let arguments = ["generate", "--assets", "\(assets)", "--library", folder.file("library")]
        let run = try RunningProgram.run(
            "Benchmarks",
            arguments + options,
            environment: try TestStore.environment(library: folder.file("library"))
        )
        guard run.status == 0 else { throw FixtureError(description: "no library was generated: \(run.errors)") }
    }

    /// Starts services in the order of the list and waits for each to be ready.
    public func start(_ services: [Service] = Service.allCases) throws {
        for service in services {
            let program = try RunningProgram(
                executables + "/" + service.rawValue,
                ["--ready-fd", "1"] + arguments[service, default: []],
                environment: environment
            )
            programs.withLock { $0[service] = program }
            guard program.waitForOutput("ready") else {
                program.killHard()
                throw FixtureError(description: "\(service.rawValue) did not become ready:\n\(program.errorText)")
            }
        }
    }

    /// Returns the process of a service; nil before it was started.
    public func program(_ service: Service) -> RunningProgram? { programs.withLock { $0[service] } }

    /// Kills a service with SIGKILL.
    public func killHard(_ service: Service) { program(service)?.killHard() }

    /// Kills a service with SIGKILL and starts it again.
    public func restart(_ service: Service) throws {
        killHard(service)
        try start([service])
    }

    /// Stops all services with SIGTERM in reverse order. Returns a description of each that did not exit with status 0.
    @discardableResult
    public func stop() -> [String] {
        var problems: [String] = []
        for service in Service.allCases.reversed() {
            guard let program = program(service), program.isRunning else { continue }
            program.signal(SIGTERM)
            let status = program.wait(seconds: 20)
            if status != 0 {
                problems.append(
                    "\(service.rawValue) ended with \(status.map(String.init) ?? "a hang")\n\(program.errorText)"
                )
            }
        }
        return problems
    }

    /// The end of each service's log, for the report of a failing test.
    public var logs: String {
        Service.allCases.compactMap { service in
            program(service).map { "--- \(service.rawValue)\n\($0.errorText.suffix(4000))" }
        }.joined(separator: "\n")
    }

    /// Returns the address of a socket by its file name without extension.
    public func address(_ name: String) throws -> EndpointAddress {
        try EndpointAddress("ipc://" + folder.file("run") + "/\(name).sock")
    }

    /// Connects a client library to the services.
    public func library(_ client: String = "test") throws -> PhotoLibrary {
        try PhotoLibrary(
            endpoints: ServiceEndpoints(
                catalog: address("catalog"),
                thumbnailer: address("thumbnailer"),
                editor: address("editor"),
                changeBroker: address("change-broker"),
                feed: address("feed"),
                edits: address("edits")
            ),
            client: client,
            logger: Logger(label: "test", factory: { _ in SwiftLogNoOpLogHandler() })
        )
    }

    /// Runs `safelight` until it exits.
    public func safelight(_ arguments: [String], seconds: Double = 120) throws -> (
        status: Int32?, output: String, errors: String
    ) {
        try RunningProgram.run("safelight", arguments, environment: environment, seconds: seconds)
    }
}

/// A failure of a service or program that a test needs.
public struct FixtureError: Error, CustomStringConvertible {
    /// The cause, with the service's log.
    public let description: String

    /// Creates an error with a description.
    public init(description: String) { self.description = description }
}
