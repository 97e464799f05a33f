import Messaging
import CZeroMQ
import Contracts
import Foundation
import PhotoClient

/// A request and its response over ipc: the project's protocol stack against a bare libzmq echo of the same bytes.
enum RequestBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "requests") else { return }
        let services = try ServicesFixture(bench.paths, "requests")
        try await services.start("catalog")
        let catalog = services.client.catalog
        let address = catalog.address.description
        let request = #"{"jsonrpc":"2.0","id":1,"method":"health","params":{"deadlineMs":5000}}"#
        let replyBytes = try await runBlocking { try replySize(of: request, at: address) }
        let echoAddress = "ipc://\(services.run)/echo.sock"
        let echo = try Child(["peer-echo", "--endpoint", echoAddress, "--reply-bytes", "\(replyBytes)"])
        try await echo.expect("ready")
        let bytes = "\(request.utf8.count)+\(replyBytes) bytes"

        for (name, outstanding, count, aim) in [("one", 1, 4_000, 0.75), ("64", 64, 30_000, 0.4)] {
            let rounds = bench.amount(count, quick: 300)
            let peer: Run = { try await bareRate(echoAddress, request, outstanding, rounds) }
            try await bench.compare(
                [
                    Comparison(
                        name: "requests.\(name)",
                        ours: "PhotoClient `health`, \(outstanding) outstanding",
                        peer: "bare DEALER/ROUTER echo, \(bytes)",
                        unit: "requests/s",
                        aim: .ratio(aim)
                    )
                ],
                ours: { [try await clientRate(catalog, outstanding, rounds)] },
                peer: peer
            )
            try await bench.compare(
                [
                    Comparison(
                        name: "requests.\(name).bare-client",
                        ours: "bare DEALER to the catalog's `health`, \(outstanding) outstanding",
                        peer: "bare DEALER/ROUTER echo, \(bytes)",
                        unit: "requests/s",
                        aim: .ratio(aim)
                    )
                ],
                ours: { try await bareRate(address, request, outstanding, rounds) },
                peer: peer
            )
        }
        withExtendedLifetime(echo) {}
        await services.stop()
    }

    private static func clientRate(_ client: ServiceClient, _ outstanding: Int, _ count: Int) async throws -> Double {
        let time = try await seconds {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for _ in 0..<outstanding {
                    group.addTask { for _ in 0..<count / outstanding { _ = try await client.health() } }
                }
                try await group.waitForAll()
            }
        }
        return Double(count / outstanding * outstanding) / time
    }

    private static func bareRate(
        _ address: String,
        _ request: String,
        _ outstanding: Int,
        _ count: Int
    ) async throws -> [Double] {
        let time = try await runBlocking {
            let socket = try BareSocket(ZMQ_DEALER, BareContext(), highWaterMark: 100_000)
            try socket.connect(address)
            // Concurrent requests have different ids with equally many digits, so that all have the same size.
            let requests = (0..<max(1, outstanding)).map { index in
                request.replacingOccurrences(of: "\"id\":1", with: "\"id\":\(outstanding == 1 ? 1 : 10 + index)")
            }.map { Array($0.utf8) }
            try socket.send(requests[0])
            _ = try socket.receiveMessage()
            let start = Clocks.microseconds()
            for request in requests { try socket.send(request) }
            var sent = outstanding
            for _ in 0..<count {
                let reply = try socket.receive { $0.count > 60 ? LiveFrame.number(id, in: $0) ?? -1 : -1 }
                guard sent < count else { continue }
                // An echo has no id; any of the open requests matches.
                let index = reply.map { outstanding == 1 ? 0 : Int($0.value) - 10 } ?? 0
                try socket.send(requests.indices.contains(index) ? requests[index] : requests[0])
                sent += 1
            }
            return Double(Clocks.microseconds() - start) / 1e6
        }
        return [Double(count) / time]
    }

    private static let id: StaticString = "\"id\":"

    private static func replySize(of request: String, at address: String) throws -> Int {
        let socket = try BareSocket(ZMQ_DEALER, BareContext())
        try socket.connect(address)
        try socket.send(request)
        return try socket.receiveMessage().first?.count ?? 0
    }
}
