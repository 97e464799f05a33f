import JSONValue
import Messaging
import Testing

@testable import Hosting

/// `--check` prints the same members in the same order for every service, and settings come from flag or variable.
@Suite(.timeLimit(.minutes(1)))
struct ServiceSettingsTests {
    private let address: EndpointAddress

    init() throws { address = try EndpointAddress("ipc:///r/x.sock") }

    @Test func `a service with workers reports its settings`() {
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
            "memory": ["serviceBytes": 8, "requestBytes": .int(256 << 20), "workerBytes": 7, "cacheBytes": 6],
            "confinement": "seccomp",
        ]
        #expect(settings.json(confinement: "seccomp", serviceBytes: 8).prettyText == expected.prettyText)
    }

    @Test func `what a service does not have is null`() {
        let settings = ServiceSettings(
            .changeBroker,
            endpoints: [(.broker, address)],
            limits: [:],
            traffic: TrafficLimits()
        )
        let json = settings.json(confinement: nil, serviceBytes: 8)
        #expect(
            json.objectValue?.members.map(\.name) == [
                "service", "endpoints", "library", "limits", "memory", "confinement",
            ]
        )
        #expect(json["library"] == .null && json["confinement"] == .null && json["limits"]?["workers"] == nil)
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

    @Test func `a number outside its range is refused by the name of its source`() throws {
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
