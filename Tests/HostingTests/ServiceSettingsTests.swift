import JSONValue
import Messaging
import TestSupport
import Testing

@testable import Hosting

/// Tests that `--check` prints the same members in the same order for every service, and of the sources of settings.
@Suite(.timeLimit(.minutes(1)))
struct ServiceSettingsTests {
    private let address: EndpointAddress

    init() throws { address = try EndpointAddress("ipc:///r/x.sock") }

    @Test func `a service with workers reports its settings`() throws {
        var limits = WorkerLimits()
        limits.memoryBytes = 7
        limits.wallSeconds = 9
        let settings = ServiceSettings(
            .editor,
            endpoints: [(.editor, address), (.catalog, address)],
            library: "/l",
            workers: .init(count: 3, limits: limits, executable: "/e"),
            limits: ["queue": 5],
            memory: ["cacheBytes": 6],
            traffic: TrafficLimits()
        )
        let expected: JSON = [
            "service": "editor", "endpoints": ["editor": "ipc:///r/x.sock", "catalog": "ipc:///r/x.sock"],
            "library": "/l", "limits": ["maxConnections": 4096, "workers": 3, "jobSeconds": 9, "queue": 5],
            "memory": [
                "serviceBytes": 8, "requestBytes": .int(256 << 20), "replyBytes": .int(512 << 20), "workerBytes": 7,
                "cacheBytes": 6,
            ],
            "confinement": "seccomp",
        ]
        #expect(try settings.json(confinement: "seccomp", serviceBytes: 8).prettyText == expected.prettyText)
    }

    @Test func `members that a service does not have are null`() throws {
        let settings = ServiceSettings(
            .changeBroker,
            endpoints: [(.broker, address)],
            limits: [:],
            traffic: TrafficLimits()
        )
        let json = try settings.json(confinement: nil, serviceBytes: 8)
        #expect(
            json.objectValue?.members.map(\.name) == [
                "service", "endpoints", "library", "limits", "memory", "confinement",
            ]
        )
        #expect(json["library"] == .null && json["confinement"] == .null && json["limits"]?["workers"] == nil)
    }

    @Test func `the TCP addresses of a listener are those of the service's own endpoints`() throws {
        let folder = try TestSupport.TemporaryFolder("keys")
        let keys = KeyFolder(path: folder.file("keys"))
        _ = try keys.makeServer()
        let host = try TCPHost("0.0.0.0", source: "--listen")
        let settings = ServiceSettings(
            .editor,
            endpoints: [(.editor, address), (.edits, address), (.catalog, address)],
            limits: [:],
            traffic: TrafficLimits(),
            listener: try NetworkListener(host, folder: keys, logger: LogLines().logger())
        )
        let endpoints = try settings.json(confinement: nil, serviceBytes: 8)["endpoints"]
        #expect(endpoints?["editorTCP"] == "tcp://0.0.0.0:5573" && endpoints?["editsTCP"] == "tcp://0.0.0.0:5576")
        #expect(endpoints?.objectValue?.count == 5)
    }

    @Test func `a warning is logged if the limits of memory together exceed that of the service`() throws {
        var traffic = TrafficLimits()
        traffic.serviceBytes = 1152 << 20
        let settings = ServiceSettings(
            .changeBroker,
            endpoints: [(.broker, address)],
            limits: [:],
            memory: ["ringBytes": .int(64 << 20), "maxFetchBytes": .int(256 << 20)],
            partsOfMemory: ["maxFetchLogBytes": .int(64 << 20)],
            traffic: traffic
        )
        #expect(settings.memoryBytes == (576 + 288) << 20, "a quarter of the service's memory is for replies")
        for (limit, warnings) in [("1152", 0), ("1151", 1)] {
            let log = LogLines()
            try settings.warnAboutMemory(log.logger()) { _ in limit }
            #expect(log.all.count == warnings, "\(limit)")
        }
        let memory = try settings.json(confinement: nil, serviceBytes: 8)["memory"]
        #expect(memory?["maxFetchBytes"] == .int(256 << 20) && memory?["maxFetchLogBytes"] == .int(64 << 20))
    }

    @Test func `a setting is taken from its flag, then its variable, then its default`() throws {
        for (flag, variable, expected) in [(1, "2", 1), (nil, "2", 2), (nil, nil, 3)] as [(Int?, String?, Int)] {
            var setting = 3
            try Environment.set(&setting, flag, "SAFELIGHT_X") { $0 == "SAFELIGHT_X" ? variable : nil }
            #expect(setting == expected)
        }
        var setting = 3
        let error = #expect(throws: HostingError.self) {
            try Environment.set(&setting, nil, "SAFELIGHT_X", kind: "number") { _ in "many" }
        }
        #expect(error?.description == "SAFELIGHT_X: many is not a number")
    }

    @Test func `the error of a number outside its range names its flag or variable`() throws {
        func number(_ flag: Int?, _ variable: String?) throws -> Int? {
            try Environment.number(flag, "--x", "SAFELIGHT_X", in: 1...9) { _ in variable }
        }
        #expect(try number(9, "1") == 9 && number(nil, "1") == 1 && number(nil, nil) == nil)
        #expect(throws: HostingError.badSetting(source: "--x", reason: "10 is not a number from 1 to 9")) {
            try number(10, nil)
        }
        #expect(throws: HostingError.badSetting(source: "SAFELIGHT_X", reason: "a is not a number from 1 to 9")) {
            try number(nil, "a")
        }
    }
}
