import JSONValue
import Basics
import Contracts
import Foundation
import Logging
import Messaging
import PhotoClient
import TestSupport

/// Real services with a library that no other fixture uses, and a client.
final class ServicesFixture {
    let paths: BenchmarkPaths
    let run: String
    let library: String
    let client: PhotoLibrary
    private(set) var running: [String: RunningProgram] = [:]

    /// - Parameter library: the folder of an existing library; nil for a new one
    init(_ paths: BenchmarkPaths, _ name: String, library: String? = nil) throws {
        self.paths = paths
        run = try paths.folder("\(name).run")
        self.library = try library ?? paths.folder("\(name).library")
        client = try Self.connect(run)
    }

    /// Returns another client with connections of its own, which the caller closes.
    func connect() throws -> PhotoLibrary { try Self.connect(run) }

    private static func connect(_ run: String) throws -> PhotoLibrary {
        try PhotoLibrary(
            endpoints: endpoints(in: run),
            client: "benchmark",
            logger: Logger(label: "benchmark", factory: { _ in SwiftLogNoOpLogHandler() })
        )
    }

    deinit { for program in running.values { program.signal(SIGKILL) } }

    static func endpoints(in folder: String) throws -> ServiceEndpoints {
        func address(_ file: String) throws -> EndpointAddress { try EndpointAddress("ipc://\(folder)/\(file).sock") }
        return ServiceEndpoints(
            catalog: try address("catalog"),
            thumbnailer: try address("thumbnailer"),
            editor: try address("editor"),
            changeBroker: try address("change-broker"),
            feed: try address("feed"),
            edits: try address("edits")
        )
    }

    /// Starts a service and waits until it answers.
    ///
    /// - Parameters:
    ///   - options: further flags
    ///   - environment: further variables
    func start(_ name: String, _ options: [String] = [], environment: [String: String] = [:]) async throws {
        let needsLibrary = name == "catalog" || name == "up"
        let program = try RunningProgram(
            paths.program(name == "up" ? "safelight" : name),
            (name == "up" ? ["up"] : []) + ["--run", run, "--log", "warning"]
                + (needsLibrary ? ["--library", library] : []) + options,
            // Generated records are years old, and trimming them would be measured too.
            environment: [
                "SAFELIGHT_LIBRARY": library, "SAFELIGHT_CACHE": run + "/cache",
                "SAFELIGHT_HISTORY_DAYS": "36500", "SAFELIGHT_HISTORY_BYTES": "17179869184",
            ].merging(environment) { $1 }
        )
        running[name] = program
        let services: [ServiceClient] =
            switch name {
            case "catalog": [client.catalog]
            case "change-broker": [client.changeBroker]
            case "thumbnailer": [client.thumbnailer]
            case "up": [client.catalog, client.changeBroker, client.thumbnailer, client.editor]
            default: []
            }
        for service in services {
            do {
                _ = try await service.health(deadline: .seconds(30))
            } catch {
                throw BenchmarkError("\(name) does not answer: \(error.message) \(program.errorText.suffix(500))")
            }
        }
    }

    /// Starts a catalog, and returns the seconds until it answers a client that connects once it is ready: libzmq would
    /// repeat an earlier attempt only after a delay.
    func secondsToStartCatalog() async throws -> Double {
        try await seconds {
            let program = try RunningProgram(
                paths.program("catalog"),
                ["--run", run, "--log", "warning", "--library", library, "--ready-fd", "1"]
            )
            running["catalog"] = program
            guard await runBlocking({ program.waitForOutput("ready") }) else {
                throw BenchmarkError("the catalog is not ready: \(program.errorText.suffix(500))")
            }
            let client = try connect()
            _ = try await client.catalog.health(deadline: .seconds(30))
            await client.close()
        }
    }

    /// Starts a second change-broker, which follows the first.
    ///
    /// - Returns: the address of its feed
    func startChainedBroker() async throws -> String {
        let feed = "ipc://\(run)/chained-feed.sock"
        let program = try RunningProgram(
            paths.program("change-broker"),
            [
                "--run", run, "--log", "warning", "--ready-fd", "1", "--feed", feed,
                "--broker", "ipc://\(run)/chained.sock", "--upstream", client.endpoints.changeBroker.description,
            ]
        )
        running["chained"] = program
        guard await runBlocking({ program.waitForOutput("ready") }) else {
            throw BenchmarkError("the chained change-broker is not ready: \(program.errorText.suffix(500))")
        }
        return feed
    }

    /// Waits until the change-broker has published a sequence. A head message would show it up to a second later.
    func waitUntilPublished(_ sequence: Int64) async throws {
        while try await client.changeBroker.ask(FeedHeadRequest()).result.sequence < sequence {
            await TaskDelay.pollInterval(.milliseconds(20))
        }
    }

    /// Stops all services and waits until they have ended.
    func stop() async {
        await client.close()
        for program in running.values {
            program.signal(SIGTERM)
            _ = await runBlocking { program.wait(seconds: 20) }
        }
        running = [:]
    }

    /// Stops one service and waits until it has ended.
    func stop(_ name: String) async {
        guard let program = running.removeValue(forKey: name) else { return }
        program.signal(SIGTERM)
        _ = await runBlocking { program.wait(seconds: 20) }
    }

    func process(_ name: String) -> Int32 { running[name]?.processIdentifier ?? 0 }
}

/// Libraries generated by `Benchmarks generate`, each once per run.
actor GeneratedLibraries {
    private let paths: BenchmarkPaths
    private var folders: [Int: String] = [:]

    init(_ paths: BenchmarkPaths) { self.paths = paths }

    static let seed = 7

    /// Returns the folder of a copy of a library with `assets` assets. Benchmarks with different purposes get different
    /// copies.
    func folder(assets: Int, for purpose: String) async throws -> String {
        if let folder = folders[assets] { return try await copy(folder, purpose, assets) }
        let folder = try paths.folder("generated-\(assets)")
        try await runProgram(
            BenchmarkPaths.ownProgram,
            ["generate", "--assets", "\(assets)", "--seed", "\(Self.seed)", "--library", folder]
        )
        guard FileManager.default.subpaths(atPath: folder)?.isEmpty == false else {
            throw BenchmarkError("no library was generated")
        }
        folders[assets] = folder
        return try await copy(folder, purpose, assets)
    }

    private func copy(_ folder: String, _ purpose: String, _ assets: Int) async throws -> String {
        let target = paths.scratch.file("\(purpose)-\(assets)")
        try await runProgram("/bin/cp", ["-r", folder, target])
        return target
    }
}
