import ArgumentParser
import Glibc
import Hosting
import JSONValue
import Messaging
import SystemPackage

/// `safelight up`
struct UpCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Run the four services on this machine until Ctrl-C.",
        discussion: """
            Prints one line when all of them take requests. Their logs go to standard error. One that dies is started \
            again at once.
            """
    )

    @OptionGroup var library: LibraryOptions

    @OptionGroup var service: ServiceOptions

    @Flag(help: "Write JSON: one line when all are up.")
    var json = false

    @OptionGroup(title: "Endpoints")
    var endpoints: EndpointOptions

    /// Each needs those before it.
    static let order: [ServiceName] = [.catalog, .changeBroker, .thumbnailer, .editor]

    func run() async throws {
        let output = Output(json: json)
        var (library, endpoints) = (library, endpoints)
        library.library = library.library.map(Self.absolute)
        endpoints.run = endpoints.run.map(Self.absolute)
        let folder = try library.resolve()
        let addresses = try endpoints.resolve()
        try addresses.folder.prepare()
        let lock = try HouseLock(runFolder: addresses.folder.path)
        let house = RunningHouse(
            programs: try Self.programFolder(),
            variables: variables(library: folder, addresses: addresses),
            output: output
        )
        let signals = StopSignals(house.stop)
        let isUp = await house.run {
            service.ready.send()
            try? output.result([
                "up": true, "library": .string(folder), "run": .string(addresses.folder.path),
                "pid": .int(Int64(getpid())),
            ]) {
                ["safelight is up: library \(folder.printable), sockets in \(addresses.folder.path.printable)"]
            }
        }
        withExtendedLifetime((lock, signals)) {}
        if !isUp { throw ExitCode(CommandFailure.Status.refused.rawValue) }
    }

    /// What every service is told, so that they agree whatever else stands in the environment.
    private func variables(library: String, addresses: Endpoints) -> [String: String] {
        var variables = ["SAFELIGHT_LIBRARY": library, "SAFELIGHT_RUN": addresses.folder.path]
        // Derived images of this library alone: another house on this machine keeps its own.
        variables["SAFELIGHT_CACHE"] = Hosting::Environment["SAFELIGHT_CACHE"] ?? library + "/cache"
        for name in EndpointName.allCases { variables[name.variable] = addresses[name].description }
        if let level = service.log { variables["SAFELIGHT_LOG"] = level }
        variables[Supervision.variable] = "1"
        return variables
    }

    private static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return FilePath(String(cString: folder)).pushing(FilePath(path)).lexicallyNormalized().string
    }

    /// The services stand beside this program.
    static func programFolder() throws -> FilePath {
        guard let program = realpath("/proc/self/exe", nil) else {
            throw CommandFailure(message: "this program cannot find itself", name: "not_found")
        }
        defer { free(program) }
        let folder = FilePath(String(cString: program)).removingLastComponent()
        for name in order where access(folder.appending(name.rawValue).string, X_OK) != 0 {
            throw CommandFailure(
                message: "\(folder.string) has no program \(name.rawValue); build all of them with `make build`",
                name: "not_found"
            )
        }
        return folder
    }
}
