import ArgumentParser
import Contracts
import Hosting
import Logging
import Messaging
import PhotoClient

/// What every command takes that speaks to the services.
struct ClientOptions: ParsableArguments {
    @Flag(help: "Write JSON: one value, or one on each line.")
    var json = false

    @Option(help: ArgumentHelp("How long to wait for a service that does not answer yet.", valueName: "seconds"))
    var wait: Double?

    @OptionGroup(title: "Endpoints")
    var endpoints: EndpointOptions

    /// Long enough for a service that is just being restarted.
    static let usualWait = 3.0

    func validate() throws {
        guard let wait else { return }
        guard wait.isFinite, (0...3600).contains(wait) else {
            throw ValidationError("--wait is a number of seconds from 0 to 3600")
        }
    }

    /// The services' addresses, checked to be safe to speak to.
    ///
    /// Where there is no run folder yet, nothing runs: an error at once, unless `--wait` says that something will.
    func serviceEndpoints() throws -> ServiceEndpoints {
        let endpoints = try endpoints.resolve()
        do throws(HostingError) {
            try endpoints.checkForCalling()
        } catch {
            guard case .noRunFolder = error, wait != nil else { throw error }
            try endpoints.folder.prepare()
        }
        return ServiceEndpoints(
            catalog: endpoints[.catalog],
            thumbnailer: endpoints[.thumbnailer],
            editor: endpoints[.editor],
            changeBroker: endpoints[.broker],
            feed: endpoints[.feed],
            edits: endpoints[.edits]
        )
    }
}

extension ServiceName {
    func client(of library: PhotoLibrary) -> ServiceClient {
        switch self {
        case .catalog: library.catalog
        case .thumbnailer: library.thumbnailer
        case .editor: library.editor
        case .changeBroker: library.changeBroker
        }
    }
}

/// A command that asks the services.
protocol LibraryCommand: AsyncParsableCommand {
    var client: ClientOptions { get }
    /// Services without which the command cannot do its work.
    var services: [ServiceName] { get }
    /// Refuses arguments that make no sense, before anybody is asked.
    func check() throws
    func run(in library: PhotoLibrary, output: Output) async throws
}

extension LibraryCommand {
    var services: [ServiceName] { [.catalog] }

    func check() throws {}

    mutating func run() async throws { try await connectAndRun() }

    /// Runs with a library that is closed at the end.
    func connectAndRun() async throws {
        let output = Output(json: client.json)
        try check()
        let library = try PhotoLibrary(
            endpoints: try client.serviceEndpoints(),
            client: "safelight",
            logger: Logger(label: "safelight", factory: { _ in SwiftLogNoOpLogHandler() })
        )
        do {
            for service in services { try await reach(service, in: library) }
            try await run(in: library, output: output)
        } catch {
            await library.close()
            throw error
        }
        await library.close()
    }

    /// Says soon, and clearly, that nobody is there.
    private func reach(_ service: ServiceName, in library: PhotoLibrary) async throws {
        let address = service.client(of: library).address
        do throws(RPCError) {
            _ = try await service.client(of: library).health(
                deadline: .seconds(client.wait ?? ClientOptions.usualWait)
            )
        } catch {
            guard error.isSilence else { throw error }
            throw CommandFailure(
                message: "the \(service.rawValue) does not answer at \(address); start the house with `safelight up`, "
                    + "or say where it is (--help)",
                name: Refusal.unavailable.rawValue
            )
        }
    }
}

extension RPCError {
    /// Nobody answered.
    var isSilence: Bool {
        switch refusal {
        case .deadlineExceeded, .connectionLost, .unavailable: true
        default: false
        }
    }
}
