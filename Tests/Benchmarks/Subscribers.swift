import Foundation
import Glibc
import JSONValue

/// A bare publisher in another process.
final class BarePublisher {
    let address: String
    private let child: Child

    init(_ folder: String, frame: [UInt8]) async throws {
        let name = UUID().uuidString.prefix(8)
        address = "ipc://\(folder)/xpub-\(name).sock"
        let file = "\(folder)/frame-\(name).json"
        try Data(frame).write(to: URL(fileURLWithPath: file))
        child = try Child(["peer-publish", "--endpoint", address, "--frame", file])
        try await child.expect("ready")
    }

    func publishBurst(_ count: Int) throws { try child.send("burst \(count)") }

    func publish(_ count: Int, perSecond: Int) throws { try child.send("rate \(count) \(perSecond)") }
}

/// Bare subscribers in another process.
final class Subscribers {
    struct Result {
        let json: JSON

        private func number(_ name: String) -> Double { json[name]?.doubleValue ?? 0 }
        var lost: Int { Int(number("lost")) }
        var perSecond: Double { number("delivered") / max(1e-6, number("microseconds") / 1e6) }
        var median: Double { number("p50") }
        var p99: Double { number("p99") }
        var bytes: Int { Int(number("bytes")) }
    }

    private let child: Child

    init(_ address: String, _ count: Int) async throws {
        child = try Child(["peer-subscribe", "--endpoint", address, "--subscribers", "\(count)"])
        try await child.expect("ready")
    }

    /// Connects subscribers to another product's server.
    init(_ broker: WireBroker, _ count: Int) async throws {
        child = try Child([
            "peer-wire", "--server", broker.server.rawValue, "--endpoint", broker.endpoint, "--subscribers", "\(count)",
        ])
        try await child.expect("ready")
    }

    /// Suspends the process: it reads nothing, and its connections stay open.
    func suspend() { kill(child.process.processIdentifier, SIGSTOP) }

    /// Resumes a suspended process.
    func resume() { kill(child.process.processIdentifier, SIGCONT) }

    /// Starts a batch with `begin`, and returns the figures of the messages that the subscribers received.
    func measureBatch(_ count: Int, _ begin: () async throws -> Void) async throws -> Result {
        try child.send("batch \(count)")
        try await child.expect("go")
        try await begin()
        return Result(json: try JSON(parsing: try await child.nextLine()))
    }
}
