import CZeroMQ
import Contracts
import Foundation
import JSONValue
import PhotoClient
import Synchronization
import TestSupport
import Testing

/// Clients that respect every limit of a single message but together request more than fits into a service's memory.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct OverloadTests {
    /// The memory in MiB that a service may use above what it used before: the open requests of one connection (64
    /// MiB), what libzmq has read of one connection (16 messages of 16 MiB), the copy of a message, and freed memory
    /// not yet returned.
    private static let bound = 512

    @Test func `256 requests of 16 MiB to a method without attachments are refused and cost bounded memory`()
        async throws
    {
        let names = try await flood(#""method":"changes.follow","params":{"credit":1}"#)
        #expect(names == ["invalid_request": 256])
    }

    @Test func `256 requests of 16 MiB to a method with attachments cost bounded memory`() async throws {
        let names = try await flood(
            #""method":"changes.perform","params":{"client":"f","transaction":"t","requests":[]}"#
        )
        #expect(names.values.reduce(0, +) == 256)
        #expect(Set(names.keys).isSubset(of: ["busy", "no error"]), "\(names)")
    }

    /// Sends 256 requests of nearly 16 MiB over one connection while another client sends short requests.
    ///
    /// - Returns: the number of responses by error name
    private func flood(_ request: String) async throws -> [String: Int] {
        let services = try SafelightFixture("flood")
        try services.start([.catalog])
        let program = try #require(services.program(.catalog))
        let library = try services.library()
        _ = try await library.currentToken()
        let before = resident(program.processIdentifier)
        let remaining = Countdown(1)
        let sender = Self.runOnThread { [services] in
            let socket = ScriptSocket(ZMQ_DEALER, services, "catalog", [ZMQ_SNDHWM: 1])
            let attachment = [UInt8](repeating: 7, count: (8 << 20) - 512)
            for number in 0..<256 {
                let json = #"{"jsonrpc":"2.0","id":\#(number),\#(request)}"#
                guard socket.send([Array(json.utf8), attachment, attachment]) else { break }
            }
            var names: [String: Int] = [:]
            for _ in 0..<256 {
                guard let frame = socket.receive(milliseconds: 30_000)?.first, let answer = try? JSON(parsing: frame)
                else { break }
                names[answer["error"]?["data"]?["name"]?.stringValue ?? "no error", default: 0] += 1
            }
            remaining.countDown()
            return names
        }
        var (peak, responses, slowest) = (0, 0, Duration.zero)
        while !remaining.isOver, program.isRunning {
            let start = ContinuousClock().now
            _ = try await library.currentToken(deadline: .seconds(10))
            slowest = max(slowest, ContinuousClock().now - start)
            peak = max(peak, resident(program.processIdentifier))
            responses += 1
        }
        TestPaths.report("memory \(peak - before) MiB more, \(responses) responses, the slowest took \(slowest)")
        #expect(program.isRunning, "\(services.logs)")
        #expect(peak - before < Self.bound)
        #expect(slowest < .seconds(2))
        let names = await sender.value
        await library.close()
        #expect(services.stop() == [])
        return names
    }

    @Test(arguments: [false, true])
    func `JSON frames of 9 MiB on four connections do not delay other clients`(isAllowed: Bool) async throws {
        let services = try SafelightFixture("large-json")
        try services.start([.catalog])
        let library = try services.library()
        _ = try await library.catalog.health()
        // Text with escapes is the slowest to parse.
        let text = #"""# + String(repeating: #"\u00e4\n"#, count: 16) + #"""#
        let values = Array(repeating: text, count: 75_000).joined(separator: ",")
        let method = isAllowed ? "changes.perform" : "health"
        let frame = Array(#"{"jsonrpc":"2.0","id":1,"method":"\#(method)","params":{"requests":[\#(values)]}}"#.utf8)
        #expect(frame.count > 9 << 20)
        let remaining = Countdown(4)
        let senders = (0..<4).map { _ in
            Self.runOnThread { [services] in
                let socket = ScriptSocket(ZMQ_DEALER, services, "catalog")
                let isSent = socket.send([frame])
                let answer = isSent ? socket.receive(milliseconds: 120_000)?.first : nil
                remaining.countDown()
                return answer.flatMap { try? JSON(parsing: $0) }?["error"]?["data"]?["name"]?.stringValue
            }
        }
        var (responses, slowest) = (0, Duration.zero)
        while !remaining.isOver {
            let start = ContinuousClock().now
            _ = try await library.catalog.health(deadline: .seconds(60))
            slowest = max(slowest, ContinuousClock().now - start)
            responses += 1
        }
        TestPaths.report("\(method): \(responses) responses meanwhile, the slowest took \(slowest)")
        #expect(slowest < .seconds(2))
        for sender in senders {
            let name = await sender.value
            #expect(name == (isAllowed ? "invalid_params" : "limit_exceeded"))
        }
        await library.close()
        #expect(services.stop() == [])
    }

    /// Runs a blocking body on a thread of its own, outside the cooperative pool.
    private static func runOnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) -> Task<Value, Never> {
        Task {
            await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: body()) }
            }
        }
    }

    private final class Countdown: Sendable {
        private let remaining: Atomic<Int>

        init(_ count: Int) { remaining = Atomic(count) }

        var isOver: Bool { remaining.load(ordering: .relaxed) <= 0 }

        func countDown() { remaining.subtract(1, ordering: .relaxed) }
    }

    /// Returns the resident memory of a process, in MiB.
    private func resident(_ pid: Int32) -> Int { ProcessStatus.resident(of: pid) / 1024 }
}
