import Contracts
import Foundation
import Logging
public import Messaging
public import PhotoClient
import Synchronization

/// The four services as real processes in a folder of their own.
public final class RunningHouse: Sendable {
    public enum Service: String, CaseIterable, Sendable {
        case catalog
        case changeBroker = "change-broker"
        case thumbnailer
        case editor
    }

    public let folder: TemporaryFolder
    public let environment: [String: String]
    private let programs = Mutex<[Service: RunningProgram]>([:])

    public init(_ name: String = "house", environment extra: [String: String] = [:]) throws {
        folder = try TemporaryFolder(name)
        var environment = [
            "SAFELIGHT_RUN": folder.file("run"),
            "SAFELIGHT_LIBRARY": folder.file("library"),
            "SAFELIGHT_LOG": "info",
            "XDG_CACHE_HOME": folder.file("cache"),
            "PATH": TestPlace.executables + ":" + (ProcessInfo.processInfo.environment["PATH"] ?? "/usr/bin:/bin"),
        ]
        environment.merge(extra) { $1 }
        self.environment = environment
    }

    /// Starts services, in the order of the list, each ready before the next.
    public func start(_ services: [Service] = Service.allCases) throws {
        for service in services {
            let program = try RunningProgram(service.rawValue, ["--ready-fd", "1"], environment: environment)
            programs.withLock { $0[service] = program }
            guard program.waitForOutput("ready") else {
                program.killHard()
                throw HouseError(description: "\(service.rawValue) did not become ready:\n\(program.errorText)")
            }
        }
    }

    public func program(_ service: Service) -> RunningProgram? { programs.withLock { $0[service] } }

    /// `kill -9`
    public func killHard(_ service: Service) { program(service)?.killHard() }

    public func restart(_ service: Service) throws {
        killHard(service)
        try start([service])
    }

    /// Asks all to end, in the reverse order, and says which did not end well.
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

    /// What the services said, for a failing test.
    public var logs: String {
        Service.allCases.compactMap { service in
            program(service).map { "--- \(service.rawValue)\n\($0.errorText.suffix(4000))" }
        }.joined(separator: "\n")
    }

    public func address(_ name: String) throws -> EndpointAddress {
        try EndpointAddress("ipc://" + folder.file("run") + "/\(name).sock")
    }

    /// A client of the house.
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

    /// Runs `safelight` to its end.
    public func safelight(_ arguments: [String], seconds: Double = 120) throws -> (
        status: Int32?, output: String, errors: String
    ) {
        try RunningProgram.run("safelight", arguments, environment: environment, seconds: seconds)
    }
}

/// A service that did not do what a test needs.
public struct HouseError: Error, CustomStringConvertible {
    public let description: String

    public init(description: String) { self.description = description }
}
