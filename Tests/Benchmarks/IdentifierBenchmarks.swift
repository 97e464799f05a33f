import CZeroMQ
import Foundation
import JSONValue

/// The time that a client needs for the identifiers of a whole library, in pages of 100,000 with `members: ["id"]`.
enum IdentifierBenchmarks {
    private static let page = 100_000

    static func run(_ bench: BenchmarkContext, _ served: ServedLibrary) async throws {
        guard bench.includes(group: "scale.identifiers") else { return }
        let assets = served.assets
        let address = "ipc://\(served.services.run)/catalog.sock"
        // The first time the catalog sorts the library; later it has the order in memory.
        for name in ["first", "again"] {
            let before = ProcessTable.processorSeconds(served.services.process("catalog"))
            let time = try await blockingSeconds { try readAll(address, assets: assets) }
            let spent = ProcessTable.processorSeconds(served.services.process("catalog")) - before
            bench.addFigure(
                ReportFigure(
                    name: "scale.identifiers.\(name).\(served.assets)",
                    text: "all identifiers in pages of 100,000; processor time of the catalog "
                        + "\(NumberFormat.text(spent)) s",
                    value: time,
                    unit: "s"
                )
            )
        }
    }

    private static func readAll(_ address: String, assets: Int) throws {
        let socket = try BareSocket(ZMQ_DEALER, BareContext())
        try socket.connect(address)
        var (read, token) = (0, JSON.null)
        while true {
            var params: JSONObject = ["members": ["id"], "from": JSON(read), "count": JSON(page)]
            if token != .null { params["token"] = token }
            let request: JSON = ["jsonrpc": "2.0", "id": 1, "method": "fetch.assets", "params": .object(params)]
            try socket.send(request.bytes)
            guard let (reply, _) = try socket.receive({ try JSON(parsing: Array($0)) }), let result = reply["result"],
                let ids = result["assets"]?.arrayValue, let count = result["count"]?.intValue
            else { throw BenchmarkError("a page of identifiers was refused") }
            token = result["token"] ?? .null
            read += ids.count
            guard read < Int(count) else { break }
            guard !ids.isEmpty else { throw BenchmarkError("a page of identifiers is empty") }
        }
        // The fetch omits assets in the trash, hidden assets and all but one frame of a burst.
        guard read > assets / 2 else { throw BenchmarkError("only \(read) identifiers were read") }
    }
}
