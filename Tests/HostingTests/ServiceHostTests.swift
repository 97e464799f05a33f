import ArgumentParser
import Glibc
import JSONValue
import Logging
import Messaging
import ServiceLifecycle
import Synchronization
import Testing

@testable import Hosting

@Suite(.timeLimit(.minutes(5)))
struct EndpointTests {
    @Test func `the run folder is resolved from the flag, the variable, the runtime folder, then the uid`() {
        let all = ["SAFELIGHT_RUN": "/b", "XDG_RUNTIME_DIR": "/run/user/7"]
        #expect(RunFolder(flag: "/a") { all[$0] }.path == "/a")
        #expect(RunFolder(flag: nil) { all[$0] }.path == "/b")
        #expect(RunFolder(flag: nil) { $0 == "XDG_RUNTIME_DIR" ? "/run/user/7" : nil }.path == "/run/user/7/safelight")
        #expect(RunFolder(flag: nil) { _ in nil }.path == "/tmp/safelight-\(geteuid())")
    }

    @Test func `each endpoint has a flag, a variable and a default`() throws {
        let options = try EndpointOptions.parse(["--run", "/r", "--feed", "tcp://127.0.0.1:5575"])
        let endpoints = try options.resolve { $0 == "SAFELIGHT_CATALOG" ? "ipc:///c.sock" : nil }
        #expect(endpoints[.feed].description == "tcp://127.0.0.1:5575")
        #expect(endpoints[.catalog].description == "ipc:///c.sock")
        #expect(endpoints[.broker].description == "ipc:///r/change-broker.sock")
        #expect(endpoints[.edits].description == "ipc:///r/edits.sock")
        #expect(EndpointName.allCases.map(\.port) == Array(5571...5576))
        #expect(EndpointName.allCases.map(\.variable).contains("SAFELIGHT_BROKER"))
    }

    @Test func `the error of an invalid address names the flag or the variable`() throws {
        let options = try EndpointOptions.parse(["--run", "/r", "--editor", "here"])
        let error = #expect(throws: HostingError.self) { try options.resolve { _ in nil } }
        #expect(error?.description.hasPrefix("--editor: ") == true)
        let variable = #expect(throws: HostingError.self) {
            try EndpointOptions.parse([]).resolve { $0 == "SAFELIGHT_FEED" ? "nonsense" : nil }
        }
        #expect(variable?.description.hasPrefix("SAFELIGHT_FEED: ") == true)
    }

    @Test func `the error of a run folder with a path that is too long for sockets names the run folder`() throws {
        let long = "/" + String(repeating: "r", count: 120)
        let flag = #expect(throws: HostingError.self) {
            try EndpointOptions.parse(["--run", long]).resolve { _ in nil }
        }
        #expect(flag?.description.hasPrefix("--run: ") == true, "\(flag as Any)")
        for name in ["SAFELIGHT_RUN", "XDG_RUNTIME_DIR"] {
            let variable = #expect(throws: HostingError.self) {
                try EndpointOptions.parse([]).resolve { $0 == name ? long : nil }
            }
            #expect(variable?.description.hasPrefix("\(name): ") == true, "\(variable as Any)")
        }
    }

    @Test func `clients may have a list of thumbnailers and of editors`() throws {
        let texts = ["tcp://10.0.0.1:5572", "tcp://10.0.0.2:5572", "ipc:///r,s/t,u.sock"]
        let options = try EndpointOptions.parse(["--run", "/r", "--thumbnailer", texts.joined(separator: ",")])
        let endpoints = try options.resolve { $0 == "SAFELIGHT_EDITS" ? "ipc:///a.sock,ipc:///b.sock" : nil }
        #expect(
            endpoints.all(.thumbnailer).map(\.description) == texts,
            "a comma without an address after it is part of the path"
        )
        #expect(endpoints[.thumbnailer].description == texts[0])
        #expect(endpoints.all(.edits).map(\.description) == ["ipc:///a.sock", "ipc:///b.sock"])
        #expect(endpoints.all(.editor).map(\.description) == ["ipc:///r/editor.sock"])
        // A service itself listens at one address.
        let error = #expect(throws: HostingError.self) { try endpoints.claim(for: .thumbnailer) }
        #expect("\(try #require(error))".contains("listens at one address"))
    }

    @Test(
        arguments: [
            ("ipc:///a.sock,ipc:///a.sock", "twice"), ("tcp://a:1,", "a:1,"), (",ipc:///a.sock", ""),
            ((1...65).map { "ipc:///\($0)" }.joined(separator: ","), "at most 64"),
        ]
    )
    func `lists with an error are refused`(text: String, expected: String) throws {
        do {
            let endpoints = try EndpointOptions.parse(["--run", "/r", "--editor", text]).resolve { _ in nil }
            #expect(endpoints[.editor].description == expected)
        } catch let error as HostingError {
            #expect(error.description.hasPrefix("--editor: ") && error.description.contains(expected), "\(error)")
        }
    }

    @Test func `a list of catalogs is accepted, and one of change-brokers refused`() throws {
        let catalogs = try EndpointOptions.parse(["--run", "/r"]).resolve {
            $0 == "SAFELIGHT_CATALOG" ? "tcp://a:1,tcp://b:2" : nil
        }
        #expect(catalogs.all(.catalog).map(\.description) == ["tcp://a:1", "tcp://b:2"])
        let options = try EndpointOptions.parse(["--run", "/r", "--broker", "tcp://a:1,tcp://b:2"])
        let error = #expect(throws: HostingError.self) { try options.resolve { _ in nil } }
        #expect(error?.description.contains("one change-broker") == true)
    }

    @Test func `traffic limits are set by flag or variable and validated`() throws {
        #expect(try TrafficOptions.parse([]).resolve { _ in nil } == TrafficLimits())
        let flags = try TrafficOptions.parse(["--max-connections", "100"]).resolve {
            $0 == "SAFELIGHT_REQUEST_MEMORY_MIB" ? "64" : "200"
        }
        #expect((flags.connections, flags.requestMebibytes, flags.serviceBytes) == (100, 64, 200 << 20))
        for (name, value) in [("SAFELIGHT_MAX_CONNECTIONS", "15"), ("SAFELIGHT_REQUEST_MEMORY_MIB", "63")] {
            #expect(throws: HostingError.self) {
                try TrafficOptions.parse([]).resolve { $0 == name ? value : nil }
            }
        }
    }

    @Test func `TCP without keys requires a flag or a variable`() throws {
        func security(_ arguments: [String], _ variable: String?) throws -> SocketSecurity {
            try EndpointOptions.parse(["--run", "/r", "--feed", "tcp://127.0.0.1:5575"] + arguments).resolve {
                $0 == "SAFELIGHT_TRUST_LOOPBACK" ? variable : nil
            }.security(of: .feed)
        }
        #expect(try security([], nil) == .none)
        #expect(try security(["--trust-loopback"], nil) == .trustedLoopback)
        #expect(try security([], "true") == .trustedLoopback)
        #expect(try security([], "false") == .none)
        #expect(throws: HostingError.self) { try security([], "perhaps") }
    }

    @Test func `the library and the log have flags, variables and defaults`() throws {
        #expect(try LibraryOptions.parse(["--library", "/l"]).resolve { _ in "/x" } == "/l")
        #expect(
            try LibraryOptions.parse([]).resolve { $0 == "HOME" ? "/home/a" : nil } == "/home/a/.local/share/safelight"
        )
        #expect(throws: HostingError.self) { try LibraryOptions.parse(["--library", "l"]).resolve { _ in nil } }
        #expect(throws: HostingError.self) { try LibraryOptions.parse([]).resolve { _ in nil } }
        #expect(try ServiceOptions.parse(["--log", "debug"]).logger("x") { _ in nil }.logLevel == .debug)
        #expect(throws: HostingError.self) { try ServiceOptions.parse([]).logger("x") { _ in "loud" } }
    }

    @Test func `the run folder is created for its owner only, and an unsafe one is refused`() throws {
        let folder = TemporaryFolder()
        let run = RunFolder(path: folder.path + "/run")
        #expect(throws: HostingError.noRunFolder(path: run.path)) { try run.check() }
        try run.prepare()
        try run.prepare()
        var status = stat()
        #expect(stat(run.path, &status) == 0)
        #expect(status.st_mode & 0o777 == 0o700)
        #expect(chmod(run.path, 0o750) == 0)
        let open = #expect(throws: HostingError.self) { try run.prepare() }
        #expect(open?.description.contains("mode 750") == true)
        #expect(rmdir(run.path) == 0)
        #expect(symlink("/tmp", run.path) == 0)
        let link = #expect(throws: HostingError.self) { try run.prepare() }
        #expect(link?.description.contains("not a folder") == true)
        #expect(unlink(run.path) == 0)
        if geteuid() == 0 {
            try run.prepare()
            #expect(chown(run.path, 1234, 1234) == 0)
            let foreign = #expect(throws: HostingError.self) { try run.check() }
            #expect(foreign?.description.contains("user 1234") == true)
        }
        #expect(throws: HostingError.self) { try RunFolder(path: "relative").prepare() }
    }

    @Test func `the error of a second instance of a service names the first`() throws {
        let folder = TemporaryFolder()
        let endpoints = try EndpointOptions.parse(["--run", folder.path]).resolve { _ in nil }
        let locks = try endpoints.claim(for: .changeBroker)
        #expect(locks.count == 2)
        let error = #expect(throws: HostingError.self) { try endpoints.claim(for: .changeBroker) }
        #expect(error?.description.hasPrefix("another change-broker, pid \(getpid()), is serving at ipc://") == true)
        #expect(try endpoints.claim(for: .catalog).count == 1)
        #expect(locks.count == 2)
    }
}

@Suite(.timeLimit(.minutes(5)))
struct ServiceLogTests {
    @Test func `a log line has time, level, label, message and sorted, escaped metadata`() {
        let lines = LogLines()
        var logger = lines.logger()
        logger[metadataKey: "b"] = "2"
        logger.info("it happened", metadata: ["a": "x y\n\u{1b}[31m", "c": "", "d": "\u{202e}abc", "e": "say \"hi\""])
        let line = lines.all[0]
        #expect(
            line.dropFirst(28)
                == #"info test it happened a="x y\n\u{1b}[31m" b=2 c="" d=\u{202e}abc e="say \"hi\"""# + "\n"
        )
        #expect(line.split(separator: " ")[0].wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/) != nil)
        #expect(ServiceLog.format(1_772_366_400_123_456) == "2026-03-01T12:00:00.123456Z")
    }

    @Test func `a log line is truncated at its limit between characters`() {
        let lines = LogLines()
        lines.logger().info("\(String(repeating: "ü", count: 10_000))")
        #expect(lines.all[0].utf8.count <= ServiceLog.maxLineBytes)
        #expect(lines.all[0].hasSuffix("ü...\n"))
    }
}

@Suite(.timeLimit(.minutes(5)))
struct MetricsTests {
    @Test func `every value falls into a bucket that contains it, and buckets do not overlap`() {
        var values = (0...5000).map { Int64($0) }
        for power in 13..<62 as Range<Int64> { values += [(1 << power) - 1, 1 << power, (1 << power) + 1] }
        var last = -1
        for value in values {
            let bucket = Histogram.bucket(of: value)
            #expect(bucket >= last)
            if bucket < 16 + 39 * 8 - 1 {
                #expect(Histogram.largest(in: bucket) >= value)
                if bucket > 0 { #expect(Histogram.largest(in: bucket - 1) < value) }
            }
            last = bucket
        }
        #expect(Histogram.bucket(of: .max) == 16 + 39 * 8 - 1)
    }

    @Test func `quantiles have a relative error of at most an eighth`() {
        let histogram = Histogram()
        #expect(histogram.quantile(0.5) == 0)
        for value in 1...1000 as ClosedRange<Int64> { histogram.record(value) }
        histogram.record(-5)
        histogram.record(.max)
        #expect((500...563).contains(histogram.quantile(0.5)))
        #expect((990...1114).contains(histogram.quantile(0.99)))
        #expect(histogram.quantile(1) == .max)
    }

    @Test func `all metrics are in one object with those of the process`() async {
        let metrics = Metrics()
        metrics.counter("commits").add(2)
        metrics.counter("commits").add()
        metrics.gauge("wal").set(7)
        metrics.histogram("commit").record(120)
        metrics.section("workers") { ["idle": 2] }
        let json = await metrics.json()
        #expect(json["commits"] == 3)
        #expect(json["wal"] == 7)
        #expect(json["commit"]?["count"] == 1)
        #expect(json["workers"] == ["idle": 2])
        #expect((json["process"]?["residentBytes"]?.intValue ?? 0) > 1_000_000)
        #expect((json["process"]?["threads"]?.intValue ?? 0) > 0)
        #expect(json.members.map(\.name) == json.members.map(\.name).sorted())
    }
}

@Suite(.timeLimit(.minutes(5)), .serialized)
struct ServiceHostTests {
    private struct Failing: Error {}

    private struct NamedComponent: Service {
        let name: String
        let events: Events
        func run() async throws {
            try? await gracefulShutdown()
            events.add(name)
        }
    }

    private final class Events: Sendable {
        let list = Mutex<[String]>([])
        func add(_ name: String) { list.withLock { $0.append(name) } }
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a signal stops the components last to first and is logged`(number: Int32) async throws {
        let lines = LogLines()
        let events = Events()
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        defer { close(ends[0]) }
        let components = ["database", "workers", "requests"].map { NamedComponent(name: $0, events: events) }
        let ready = ReadySignal(descriptor: ends[1])
        let (readEnd, logger) = (ends[0], lines.logger(.info))
        try await withThrowingTaskGroup { group in
            group.addTask {
                try await ServiceHost.run(
                    name: .editor,
                    logger: logger,
                    endpoints: ["ipc:///x"],
                    ready: ready,
                    components: components
                )
            }
            let line = await onOwnThread {
                var buffer = [UInt8](repeating: 0, count: 100)
                let count = read(readEnd, &buffer, 100)
                return String(decoding: buffer[..<max(0, count)], as: UTF8.self)
            }
            #expect(line == "ready\n")
            kill(getpid(), number)
            try await group.waitForAll()
        }
        #expect(events.list.withLock { $0 } == ["requests", "workers", "database"])
        #expect(lines.all.first?.contains("service started service.endpoints=ipc:///x") == true)
        #expect(lines.all.last?.contains("service stopped reason=SIG") == true)
    }

    @Test func `a second signal ends a service that does not stop`() async {
        let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
            let stubborn = ClosingComponent("stubborn") {
                kill(getpid(), SIGTERM)
                while true { try? await Task.sleep(for: .seconds(60)) }
            }
            let first = LoopComponent("first") {
                kill(getpid(), SIGTERM)
                try await Task.sleep(for: .seconds(60))
            }
            try await ServiceHost.run(
                name: .editor,
                logger: ServiceLog.logger(label: "test", level: .info),
                components: [stubborn, first]
            )
        }
        let log = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(log.contains("service terminated immediately reason=\"a second signal\""))
    }

    @Test func `a component that fails or ends unexpectedly ends the service with an error`() async throws {
        for fails in [true, false] {
            let lines = LogLines()
            let component = LoopComponent("loop") { if fails { throw Failing() } }
            await #expect(throws: ExitCode.failure) {
                try await ServiceHost.run(name: .editor, logger: lines.logger(.info), components: [component])
            }
            #expect(lines.all.last?.contains("service failed") == true)
        }
    }

    @Test func `a request server and workers stop on shutdown`() async throws {
        struct Echo: RequestHandler {
            @concurrent func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError)
                -> Reply
            {
                Reply(request.params)
            }
        }
        let folder = TemporaryFolder()
        let lines = LogLines()
        let python = PythonPool()
        try await python.pool.start()
        let thread = try PollThread(name: "test")
        let server = try RequestServer(
            address: EndpointAddress("ipc://\(folder.path)/x.sock"),
            thread: thread,
            logger: lines.logger(),
            handler: Echo()
        )
        let events = Events()
        var ends: [Int32] = [-1, -1]
        #expect(pipe(&ends) == 0)
        defer { close(ends[0]) }
        let ready = ReadySignal(descriptor: ends[1])
        let (readEnd, logger) = (ends[0], lines.logger(.info))
        try await withThrowingTaskGroup { group in
            group.addTask {
                try await ServiceHost.run(
                    name: .catalog,
                    logger: logger,
                    ready: ready,
                    components: [
                        ClosingComponent("poll thread") {
                            events.add("closed")
                            await thread.shutdown()
                        }, WorkerPoolComponent(python.pool), RequestServerComponent(server),
                    ]
                )
            }
            await onOwnThread {
                var byte: UInt8 = 0
                _ = read(readEnd, &byte, 1)
            }
            kill(getpid(), SIGTERM)
            try await group.waitForAll()
        }
        #expect(events.list.withLock { $0 } == ["closed"])
        #expect(python.pool.metrics()["idle"] == 0)
    }
}
