import CZeroMQ
import Foundation
import GRDB
import Messaging
import PhotoClient
import PhotoModel
import TestSupport

/// Reading a whole library in pages of 1,000 assets, and its keys by `fetch.keys`, against SQLite that reads the same
/// rows of the same file. `--large` uses 1,000,000 assets.
enum PageBenchmarks {
    private static let page = 1000

    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "pages") else { return }
        let assets = bench.isLarge ? 1_000_000 : 100_000
        let served = try await ServedLibrary(bench, assets: assets, for: "pages")
        try await compareMirror(bench, served)
        try await compareKeys(bench, served)
        await served.services.stop()
    }

    private static func compareMirror(_ bench: BenchmarkContext, _ served: ServedLibrary) async throws {
        let address = served.services.client.catalog.address.description
        let catalog = served.services.process("catalog")
        let count = bench.isFast ? 5 * page : served.assets
        let database = try DatabaseQueue(path: served.services.library + "/library.sqlite")
        var (spent, read) = (0.0, 0)
        try await bench.compare(
            [
                Comparison(
                    name: "pages.mirror",
                    ours:
                        "fetch.assets, pages of 1,000 of \(NumberFormat.text(Double(served.assets))) assets, "
                        + "bare DEALER",
                    peer: "SQLite in process, the same rows of the four tables in lists of 1,000",
                    unit: "assets/s",
                    aim: .figure(50_000)
                )
            ],
            pairs: min(3, bench.pairs),
            ours: {
                let before = ProcessTable.threadSeconds(catalog)
                let (rate, assets) = try await runBlocking { try readPages(address, count) }
                spent += ProcessTable.threadSeconds(catalog) - before
                read += assets
                return [rate]
            },
            peer: { [try await runBlocking { try bareRate(database, count) }] },
            notes: {
                let microseconds = spent / Double(max(1, read)) * 1e6
                return [
                    "\(NumberFormat.text(microseconds)) µs of the catalog's processor time per asset; aim: at most 12"
                ]
            }
        )
    }

    /// Reads the pages of one result, all at the sequence of the first page, until `limit` assets are read.
    private static func readPages(_ address: String, _ limit: Int) throws -> (rate: Double, assets: Int) {
        let socket = try BareSocket(ZMQ_DEALER, BareContext())
        try socket.connect(address)
        var (from, count, token) = (0, limit, "")
        let start = Clocks.microseconds()
        while from < count {
            try socket.send(
                #"{"jsonrpc":"2.0","id":1,"method":"fetch.assets","params":{"fetch":{"kind":"assets"},"#
                    + #""from":\#(from),"count":\#(page)\#(token)}}"#
            )
            let reply = try socket.receive { String(decoding: $0.prefix(300), as: UTF8.self) }
            guard let head = reply?.value, let name = member("token", of: head), let text = member("count", of: head),
                let assets = Int(text)
            else { throw BenchmarkError("no page from \(from): \(reply?.value ?? "")") }
            token = #","token":"\#(name)""#
            count = min(limit, assets)
            from += page
        }
        return (Double(count) / (Double(Clocks.microseconds() - start) / 1e6), count)
    }

    /// Returns the text or number of a member near the beginning of a reply.
    private static func member(_ name: String, of text: String) -> String? {
        guard let start = text.range(of: "\"\(name)\":") else { return nil }
        return text[start.upperBound...].split(whereSeparator: { "\",}".contains($0) }).first.map(String.init)
    }

    private static func bareRate(_ database: DatabaseQueue, _ count: Int) throws -> Double {
        let start = Clocks.microseconds()
        let assets = try database.read { database in
            let rows = try Int64.fetchAll(
                database,
                sql: "SELECT row FROM asset WHERE visible = 1 ORDER BY added_date, id LIMIT ?",
                arguments: [count]
            )
            for start in stride(from: 0, to: rows.count, by: page) {
                let list =
                    "[" + rows[start..<min(start + page, rows.count)].map(String.init).joined(separator: ",") + "]"
                for table in [
                    "asset a ON a.row", "resource a ON a.asset", "keyword a ON a.asset", "membership a ON a.asset",
                ] {
                    let sql = "SELECT a.* FROM json_each(?) e CROSS JOIN \(table) = e.value"
                    let cursor = try Row.fetchCursor(try database.cachedStatement(sql: sql), arguments: [list])
                    while let row = try cursor.next() { for index in 0..<row.count { _ = row[index] as DatabaseValue } }
                }
            }
            return rows.count
        }
        return Double(assets) / (Double(Clocks.microseconds() - start) / 1e6)
    }

    // MARK: Keys

    private static func compareKeys(_ bench: BenchmarkContext, _ served: ServedLibrary) async throws {
        let address = served.services.client.catalog.address.description
        let database = try DatabaseQueue(path: served.services.library + "/library.sqlite")
        try await bench.compare(
            [
                Comparison(
                    name: "pages.keys",
                    ours: "fetch.keys of \(NumberFormat.text(Double(served.assets))) assets by capture date",
                    peer: "SQLite in process, date and identifier in the same order",
                    unit: "keys/s",
                    aim: nil
                )
            ],
            pairs: min(3, bench.pairs),
            ours: { [try await runBlocking { try keyRate(address) }] },
            peer: {
                [
                    try await runBlocking {
                        let start = Clocks.microseconds()
                        let count = try database.read { database in
                            let sql = """
                                SELECT creation_date, id FROM asset WHERE visible = 1 ORDER BY creation_date DESC, id
                                """
                            var count = 0
                            let cursor = try Row.fetchCursor(database, sql: sql)
                            while let row = try cursor.next() {
                                _ = row[1] as String
                                count += 1
                            }
                            return count
                        }
                        return Double(count) / (Double(Clocks.microseconds() - start) / 1e6)
                    }
                ]
            }
        )
    }

    private static func keyRate(_ address: String) throws -> Double {
        let socket = try BareSocket(ZMQ_DEALER, BareContext())
        try socket.connect(address)
        let start = Clocks.microseconds()
        try socket.send(
            #"{"jsonrpc":"2.0","id":1,"method":"fetch.keys","params":{"fetch":{"kind":"assets","#
                + #""sort":[{"key":"creationDate","ascending":false}]}}}"#
        )
        while true {
            let frames = try socket.receiveMessage()
            guard let text = frames.first.map({ String(decoding: $0.prefix(400), as: UTF8.self) }),
                text.contains(#""result":"#) || text.contains(#""error":"#)
            else { continue }
            guard let keys = member("count", of: text).flatMap({ Double($0) })
            else { throw BenchmarkError("fetch.keys: \(text)") }
            return keys / (Double(Clocks.microseconds() - start) / 1e6)
        }
    }
}
