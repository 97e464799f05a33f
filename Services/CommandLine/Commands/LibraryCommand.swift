import ArgumentParser
import Contracts
import Hosting
import JSONValue
import Logging
import Messaging
import PhotoClient

/// A command that sends requests to the services.
protocol LibraryCommand: AsyncParsableCommand {
    var client: ClientOptions { get }
    /// The services that the command requires.
    var services: [ServiceName] { get }
    /// True if the command prints its progress when a signal ends it. Other commands handle signals themselves, or have
    /// no progress to report.
    var reportsAtSignals: Bool { get }
    /// Checks the arguments before a connection is made.
    func check() throws
    /// Runs the command with a connected library.
    func run(in library: PhotoLibrary, output: Output) async throws
}

extension LibraryCommand {
    var services: [ServiceName] { [.catalog] }
    var reportsAtSignals: Bool { false }

    func check() throws {}

    mutating func run() async throws { try await connectAndRun() }

    /// Connects, runs the command and closes the connections.
    func connectAndRun() async throws {
        let output = Output(json: client.json)
        try check()
        let signals = reportsAtSignals ? InterruptedWork.reportAtSignals() : nil
        defer { withExtendedLifetime(signals) {} }
        let library = try PhotoLibrary(
            endpoints: try client.serviceEndpoints(),
            client: "safelight",
            logger: Logger(label: "safelight", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        do {
            for service in services { try await requireResponse(of: service, in: library) }
            try await run(in: library, output: output)
        } catch {
            await library.close()
            throw error
        }
        await library.close()
    }

    /// Checks that a service responds, for an early and clear error message.
    private func requireResponse(of service: ServiceName, in library: PhotoLibrary) async throws {
        let addresses = service.client(of: library).addresses.map(\.description).joined(separator: ", ")
        do throws(RPCError) {
            let limit = Duration.seconds(client.wait ?? ClientOptions.defaultWait)
            try await service.client(of: library).waitForAnswer(within: limit)
        } catch {
            guard error.meansNoResponse else { throw error }
            throw CommandFailure(
                message: "the \(service.rawValue) does not respond at \(addresses); start the services with "
                    + "`safelight up`, or give their addresses (see --help)",
                name: ErrorCode.unavailable.rawValue
            )
        }
    }
}

extension ServiceName {
    /// Returns the library's client for this service.
    func client(of library: PhotoLibrary) -> ServiceClient {
        switch self {
        case .catalog: library.catalog
        case .thumbnailer: library.thumbnailer
        case .editor: library.editor
        case .changeBroker: library.changeBroker
        }
    }
}

extension RPCError {
    /// True if the error means that the service did not respond.
    var meansNoResponse: Bool {
        switch errorCode {
        case .deadlineExceeded, .connectionLost, .unavailable: true
        default: false
        }
    }
}
