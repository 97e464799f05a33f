import Messaging
import Basics
import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight status`
struct StatusCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "status",
        abstract: "Show the health and metrics of the services.",
        discussion: """
            The exit status is 0 if every service is healthy. With --wait, the command waits until they are. With the \
            name of one service it works as a health check of that service.
            """
    )

    @Argument(help: "Services to show: catalog, thumbnailer, editor, change-broker. Default: all.")
    var names: [ServiceName] = []

    @Flag(help: "Print all metrics.")
    var figures = false

    @Flag(help: "Print all metrics as Prometheus text.")
    var prometheus = false

    @Option(
        name: .shortAndLong,
        help: ArgumentHelp(
            "With --prometheus: write to this file, atomically, for the textfile collector of the node exporter.",
            valueName: "file"
        )
    )
    var output: String?

    @Flag(help: "Print only the token of the newest change, for `watch --since`.")
    var token = false

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { token ? [.catalog] : [] }

    private var selectedServices: [ServiceName] {
        names.isEmpty ? ServiceName.allCases : ServiceName.allCases.filter(names.contains)
    }

    /// The health and metrics of one service.
    struct State: Sendable {
        let service: ServiceName
        let address: String
        var health: Health.Result?
        var metrics: JSONObject = [:]
        var problem = ""

        var isHealthy: Bool { health?.isHealthy ?? false }

        var json: JSON {
            var json: JSONObject = [
                "service": .string(service.rawValue), "address": .string(address), "isHealthy": .bool(isHealthy),
            ]
            if let health {
                json["version"] = .string(health.version)
                json["sequence"] = .int(health.sequence)
                if let role = health.role { json["role"] = .string(role.rawValue) }
                if let epoch = health.epoch { json["epoch"] = .int(epoch) }
                json["problems"] = JSON(health.problems)
                json["figures"] = .object(metrics)
            } else {
                json["problems"] = JSON([problem])
            }
            return .object(json)
        }
    }

    func validate() throws {
        guard output == nil || prometheus else { throw ValidationError("--output is for --prometheus") }
        guard !prometheus || !client.json else { throw ValidationError("--prometheus and --json exclude each other") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        if token {
            let token = try await library.currentToken().token
            return try output.result(["token": .string(token.description)]) { [token.description] }
        }
        let states = await states(of: library)
        if prometheus {
            // The state of the services is in the text; a scrape of a stopped service has succeeded.
            let text = PrometheusText.lines(states)
            guard let file = self.output else { return try output.lines(text) }
            return try OutputFile.write(Array((text.joined(separator: "\n") + "\n").utf8), to: file)
        }
        let isHealthy = states.allSatisfy(\.isHealthy)
        try output.result([
            "isHealthy": .bool(isHealthy),
            "services": .object(
                states.reduce(into: [:]) { object, state in
                    // The other instances of a service have their address in their name.
                    let name = state.service.rawValue
                    object[object[name] == nil ? name : "\(name) \(state.address)"] = state.json
                }
            ),
        ]) { Self.lines(states, withMetrics: figures) }
        if !isHealthy { throw ExitCode(CommandFailure.Status.refused.rawValue) }
    }

    private func states(of library: PhotoLibrary) async -> [State] {
        let deadline = Duration.seconds(client.wait ?? ClientOptions.defaultWait)
        let waitsForHealth = client.wait != nil
        let clients = selectedServices.flatMap { name in name.client(of: library).instances.map { (name, $0) } }
        return await withTaskGroup(of: (Int, State).self) { group in
            for (index, (name, client)) in clients.enumerated() {
                group.addTask {
                    (index, await Self.state(of: name, client, within: deadline, waitsForHealth: waitsForHealth))
                }
            }
            var states: [(Int, State)] = []
            for await state in group { states.append(state) }
            return states.sorted { $0.0 < $1.0 }.map(\.1)
        }
    }

    /// Returns the state of a service; with `--wait`, polls until it is healthy or the time is up. There is no event
    /// for a change of health.
    private static func state(
        of service: ServiceName,
        _ client: ServiceClient,
        within time: Duration,
        waitsForHealth: Bool
    ) async -> State {
        let clock = ContinuousClock()
        let end = clock.now + time
        while true {
            let state = await state(of: service, client, deadline: max(end - clock.now, .milliseconds(1)))
            guard waitsForHealth, !state.isHealthy, clock.now + pollInterval < end, !Task.isCancelled else {
                return state
            }
            await TaskDelay.pollInterval(pollInterval)
        }
    }

    private static let pollInterval = Duration.milliseconds(100)

    private static func state(of service: ServiceName, _ client: ServiceClient, deadline: Duration) async -> State {
        var state = State(service: service, address: client.address.description)
        do throws(RPCError) {
            state.health = try await client.health(deadline: deadline)
            state.metrics = try await client.metrics()
        } catch {
            state.problem = error.meansNoResponse ? "does not respond" : error.message
        }
        return state
    }

    static func lines(_ states: [State], withMetrics: Bool) -> [String] {
        var table = TextTable([
            .init(title: "service"), .init(title: "state"), .init(title: "sequence", alignment: .right),
            .init(title: "version"), .init(title: "address"),
        ])
        for state in states {
            var word = state.health == nil ? "unreachable" : state.isHealthy ? "healthy" : "unhealthy"
            if state.health?.role == .standby { word += ", standby" }
            table.add([
                state.service.rawValue, word, state.health.map { "\($0.sequence)" } ?? "-",
                state.health?.version ?? "-", state.address,
            ])
        }
        var lines = table.lines
        for state in states {
            let problems = state.health?.problems ?? [state.problem]
            lines += problems.map { "\(state.service.rawValue): \($0.printable)" }
        }
        lines += states.compactMap { $0.metrics["reread"].flatMap(rereadLine) }
        lines += states.compactMap(imageLine)
        if let edits = states.lazy.compactMap({ $0.metrics["published"]?.objectValue }).first {
            lines += [publishedLine(edits)]
        }
        for state in states where withMetrics && !state.metrics.isEmpty {
            lines += ["", "\(state.service.rawValue):"] + metricLines(state.metrics, indent: 2)
        }
        return lines
    }

    /// Returns the progress of reading files of earlier versions again; nil if all were read.
    static func rereadLine(_ metrics: JSON) -> String? {
        guard let files = metrics["files"]?.intValue, let done = metrics["done"]?.intValue, done < files else {
            return nil
        }
        return "metadata: \(done) of \(files) files of earlier versions read again"
    }

    /// Returns a summary of the thumbnailer in one line: queue, cache hit rate, renders per second, cache size.
    private static func imageLine(_ state: State) -> String? {
        func number(_ name: String, in group: JSON? = nil) -> Int64 {
            (group?[name] ?? state.metrics[name])?.intValue ?? 0
        }
        guard state.service == .thumbnailer, let cache = state.metrics["cache"] else { return nil }
        let hits = number("memoryHits") + number("diskHits")
        let all = hits + number("misses")
        let rate = all > 0 ? ", \(100 * hits / all) % of \(all) requests from the cache" : ""
        let waiting = number("due", in: cache) + number("waiting", in: state.metrics["caching"])
        let renders = state.metrics["rate"]?["rendersPerSecond"]?.doubleValue ?? 0
        return "images: \(waiting) waiting\(rate), \(QuantityFormatter.rate(renders)) rendered per second, "
            + "\(number("diskEntries", in: cache)) cached (\(QuantityFormatter.bytes(number("diskBytes", in: cache))))"
    }

    /// Returns a summary in one line of the edits that were pushed to the editor.
    static func publishedLine(_ metrics: JSONObject) -> String {
        func number(_ name: String) -> Int64 { metrics[name]?.intValue ?? 0 }
        let open = number("waiting") + number("ready") + number("running")
        var line =
            "published edits: \(number("received")) received, \(number("accepted")) accepted, "
            + "\(number("applied")) applied, \(number("failed")) failed, \(open) waiting"
        if open > 0 { line += ", the oldest for \(number("oldestMilliseconds") / 1000) s" }
        if number("unreadable") > 0 { line += ", \(number("unreadable")) unreadable" }
        return line
    }

    /// Returns one line for each name and value; the members of a group are indented below its name.
    private static func metricLines(_ metrics: JSONObject, indent: Int) -> [String] {
        metrics.members.flatMap { name, value -> [String] in
            let start = String(repeating: " ", count: indent) + name.printable
            guard let object = value.objectValue else { return ["\(start): \(value.text.printable)"] }
            return ["\(start):"] + metricLines(object, indent: indent + 2)
        }
    }
}
