import Messaging
import ArgumentParser
import Glibc
import Hosting
import JSONValue
import SystemPackage

/// `safelight up`
struct UpCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "up",
        abstract: "Run the four services on this machine until Ctrl-C.",
        discussion: """
            Prints one line when all services accept requests. Their logs go to standard error. A service that ends \
            unexpectedly is restarted at once.
            """
    )

    @OptionGroup var library: LibraryOptions

    @OptionGroup var store: StoreOptions

    @OptionGroup var replica: StoreReplicaOptions

    @OptionGroup var newLibrary: NewLibraryOptions

    @OptionGroup var service: ServiceOptions

    @Flag(help: "Print JSON: one line when all services are up.")
    var json = false

    @OptionGroup(title: "Endpoints")
    var endpoints: EndpointOptions

    /// The order in which the services are started: each needs those before it.
    static let order: [ServiceName] = [.catalog, .changeBroker, .thumbnailer, .editor]

    func run() async throws {
        let output = Output(json: json)
        var (library, newLibrary, endpoints) = (library, newLibrary, endpoints)
        library.library = library.library.map(ServicePaths.absolute)
        endpoints.run = endpoints.run.map(ServicePaths.absolute)
        newLibrary.state = newLibrary.state.map(ServicePaths.absolute)
        let folder = try library.resolve()
        let database = try store.resolve()
        let replica = try replica.resolve()
        let addresses = try endpoints.resolve()
        try addresses.folder.prepare()
        // Checked once, not at each start of the catalog, which may be restarted after the volume was unmounted.
        _ = try newLibrary.resolve(library: folder)
        if Self.hasForeignFiles(folder) {
            output.note(
                "safelight: \(folder.printable) has other files beside those of the library. An import skips the whole "
                    + "folder: if these are photos to import, stop and name another folder with --library"
            )
        }
        let lock = try RunFolderLock(runFolder: addresses.folder.path)
        let supervisor = ServiceSupervisor(
            programs: try ServicePaths.programFolder(with: Self.order),
            variables: variables(library: folder, database: database, replica: replica, addresses: addresses),
            output: output
        )
        let signals = StopSignals(supervisor.stop)
        let isUp = await supervisor.run {
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

    /// Returns true if a new library is created in a folder with visible files that are not those of a library.
    static func hasForeignFiles(_ folder: String) -> Bool {
        let path = FilePath(folder)
        guard let names = try? ImageFileFinder.names(in: path), !ImageFileFinder.isLibrary(names, path) else {
            return false
        }
        let own: Set = ["resources", "cache", "head", "lock", "last-changes", "lost+found"]
        return names.map { String(decoding: $0, as: UTF8.self) }
            .contains { !own.contains($0) && !$0.hasPrefix(".") && !$0.hasPrefix("library") }
    }

    /// Returns the environment variables of every service, so that all use the same settings whatever the inherited
    /// environment contains.
    func variables(
        library: String,
        database: String?,
        replica: String?,
        addresses: Endpoints
    ) -> [String: String] {
        var variables = ["SAFELIGHT_LIBRARY": library, "SAFELIGHT_RUN": addresses.folder.path]
        variables["SAFELIGHT_STORE"] = database ?? "sqlite"
        if let replica { variables["SAFELIGHT_STORE_REPLICA"] = replica }
        // The cache belongs to this library; the services of another library on this machine have their own.
        variables["SAFELIGHT_CACHE"] = Hosting::Environment["SAFELIGHT_CACHE"] ?? library + "/cache"
        for name in EndpointName.allCases { variables[name.variable] = addresses[name].description }
        if addresses.localSecurity == .trustedLoopback { variables["SAFELIGHT_TRUST_LOOPBACK"] = "true" }
        if let state = newLibrary.state { variables["SAFELIGHT_STATE"] = ServicePaths.absolute(state) }
        if let level = service.log { variables["SAFELIGHT_LOG"] = level }
        variables[Supervision.variable] = "1"
        return variables
    }
}
