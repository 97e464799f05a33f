import CZeroMQ
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// Fan-out of the change-broker over a synthetic history, against bare libzmq with the same bytes and the same readers.
enum FeedBenchmarks {
    static func run(_ bench: Bench) async throws {
        guard bench.wants("feed") else { return }
        let services = try Services(bench.place, "feed")
        let source = try SyntheticCatalog()
        let address = services.client.endpoints.catalog
        let serving = Task { try await source.run(at: address) }
        try await services.start("change-broker")
        while source.followers == 0 { try await Task.sleep(for: .milliseconds(20)) }
        for subscribers in [10, 100] {
            try await fanOut(bench, services, source, subscribers: subscribers)
        }
        try await standstill(bench, services, source)
        for readers in [10, 100] { try await replay(bench, services, source, readers: readers) }
        await services.stop()
        serving.cancel()
        await source.shutdown()
    }

    // MARK: Live

    private static func fanOut(
        _ bench: Bench,
        _ services: Services,
        _ source: SyntheticCatalog,
        subscribers: Int
    ) async throws {
        let name = "feed.live.\(subscribers)"
        guard bench.wants(name) else { return }
        let peer = try await BarePublisher(services.run, frame: source.liveFrame)
        let ours = try await Subscribers(services.client.endpoints.feed.description, subscribers)
        let theirs = try await Subscribers(peer.address, subscribers)
        let records = bench.amount(20_000, quick: 500)
        let messages = bench.amount(subscribers > 10 ? 10_000 : 60_000, quick: 500)
        let broker = services.process("change-broker")
        var (lost, spent, told) = (0, 0.0, 0)
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "change-broker over a synthetic catalog, \(subscribers) bare subscribers",
                    peer: "bare XPUB without loss, the same \(source.liveFrame.count) bytes and subscribers, ipc",
                    unit: "deliveries/s",
                    aim: .ratio(0.6)
                )
            ],
            ours: {
                let before = ProcessTable.processorSeconds(broker)
                let batch = try await ours.batch(records) { source.grow(by: records) }
                lost += batch.lost
                told += records
                spent += ProcessTable.processorSeconds(broker) - before
                return [batch.perSecond]
            },
            peer: { [try await theirs.batch(messages) { try peer.burst(messages) }.perSecond] },
            notes: {
                [
                    "\(lost) of \(told * subscribers) deliveries lost on the live path; broker "
                        + "\(Figure.text(spent / Double(max(1, told)) * 1e6)) µs of processor a record"
                ]
            }
        )
    }

    /// What a subscriber that stands still costs the others: the same fan-out with one and without.
    private static func standstill(_ bench: Bench, _ services: Services, _ source: SyntheticCatalog) async throws {
        let name = "feed.standstill"
        guard bench.wants(name) else { return }
        let address = services.client.endpoints.feed.description
        let others = try await Subscribers(address, 10)
        let records = bench.amount(20_000, quick: 500)
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "change-broker, 10 bare subscribers beside one that stands still",
                    peer: "the same without it",
                    unit: "deliveries/s",
                    aim: .ratio(0.9)
                )
            ],
            ours: {
                let still = try await Subscribers(address, 1)
                still.stop()
                defer { still.goOn() }
                return [try await others.batch(records) { source.grow(by: records) }.perSecond]
            },
            peer: { [try await others.batch(records) { source.grow(by: records) }.perSecond] }
        )
    }

    // MARK: Durable

    /// Pages through the broker's memory of history, against a bare ROUTER that sends pages of the same size.
    private static func replay(
        _ bench: Bench,
        _ services: Services,
        _ source: SyntheticCatalog,
        readers: Int
    ) async throws {
        let name = "feed.replay.\(readers)"
        guard bench.wants(name) else { return }
        let client = services.client.changeBroker
        let records = bench.amount(20_000, quick: 1000)
        let start = source.head
        source.grow(by: records)
        while try await client.ask(FeedHeadRequest()).result.sequence < source.head {
            try await Task.sleep(for: .milliseconds(20))
        }
        let library = try await client.ask(FeedHeadRequest()).result.library
        let token = ChangeToken(library: library, sequence: start).description
        let address = client.address.description
        let first = try await blocking { try Replay(address, token).turn() }
        guard first.records > 0 else { throw BenchmarkError("the broker replays nothing") }
        let echoAddress = "ipc://\(services.run)/echo-\(readers).sock"
        let echo = try Child(["peer-echo", "--endpoint", echoAddress, "--reply-bytes", "\(first.bytes)"])
        try await echo.expect("ready")
        let pages = min(records / first.records, readers > 10 ? 3 : 20)
        try await bench.compare(
            [
                Comparison(
                    name: name,
                    ours: "feed.since from the broker's memory, \(readers) bare readers",
                    peer: "bare ROUTER, pages of the same \(first.bytes >> 10) KiB (\(first.records) records)",
                    unit: "deliveries/s",
                    aim: .figure(500_000)
                )
            ],
            ours: { [try await rate(address, token, readers, pages: pages)] },
            peer: { [try await bareRate(echoAddress, readers, turns: 4 * pages, records: first.records)] }
        )
        withExtendedLifetime(echo) {}
    }

    private static func rate(_ address: String, _ token: String, _ readers: Int, pages: Int) async throws -> Double {
        try await blocking {
            let all = try (0..<readers).map { _ in try Replay(address, token) }
            let start = Clocks.microseconds()
            for reader in all { try reader.ask() }
            var records = 0
            for page in 0..<pages {
                for reader in all {
                    records += try reader.take().records
                    if page < pages - 1 { try reader.ask() }
                }
            }
            return Double(records) / (Double(Clocks.microseconds() - start) / 1e6)
        }
    }

    private static func bareRate(
        _ address: String,
        _ readers: Int,
        turns: Int,
        records: Int
    ) async throws -> Double {
        try await blocking {
            let context = try BareContext()
            let all = try (0..<readers).map { _ in
                let socket = try BareSocket(ZMQ_DEALER, context)
                try socket.connect(address)
                return socket
            }
            let start = Clocks.microseconds()
            for reader in all { try reader.send("x") }
            for turn in 0..<turns {
                for reader in all {
                    _ = try reader.receive { _ in }
                    if turn < turns - 1 { try reader.send("x") }
                }
            }
            return Double(turns * readers * records) / (Double(Clocks.microseconds() - start) / 1e6)
        }
    }
}

/// A bare reader that pages through `feed.since` by text, without reading the JSON.
private final class Replay {
    private let socket: BareSocket
    private var token: String

    init(_ address: String, _ token: String) throws {
        socket = try BareSocket(ZMQ_DEALER, BareContext())
        try socket.connect(address)
        self.token = token
    }

    func ask() throws {
        try socket.send(
            #"{"jsonrpc":"2.0","id":1,"method":"feed.since","params":{"limit":1000,"token":"\#(token)"}}"#
        )
    }

    /// - Returns: how many records came, told by the tokens, and the bytes
    func take() throws -> (records: Int, bytes: Int) {
        let reply = try socket.receiveAll().first ?? []
        // The page's own token stands behind the records.
        let tail = String(decoding: reply.suffix(600), as: UTF8.self)
        guard let start = tail.range(of: #""token":""#),
            let next = tail[start.upperBound...].split(separator: "\"").first
        else { throw BenchmarkError("no page: \(String(decoding: reply.prefix(300), as: UTF8.self))") }
        let old = ChangeToken(token)?.sequence ?? 0
        token = String(next)
        return (Int((ChangeToken(token)?.sequence ?? old) - old), reply.count)
    }

    func turn() throws -> (records: Int, bytes: Int) {
        try ask()
        return try take()
    }
}

/// A bare publisher in a process of its own.
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

    func burst(_ count: Int) throws { try child.say("burst \(count)") }

    func rate(_ count: Int, perSecond: Int) throws { try child.say("rate \(count) \(perSecond)") }
}

/// Bare subscribers in a process of their own.
final class Subscribers {
    struct Result {
        let json: JSON

        private func number(_ name: String) -> Double { json[name]?.doubleValue ?? 0 }
        var lost: Int { Int(number("lost")) }
        var perSecond: Double { number("delivered") / max(1e-6, number("microseconds") / 1e6) }
        var median: Double { number("p50") }
        var nearlySlowest: Double { number("p99") }
        var bytes: Int { Int(number("bytes")) }
    }

    private let child: Child

    init(_ address: String, _ count: Int) async throws {
        child = try Child(["peer-subscribe", "--endpoint", address, "--subscribers", "\(count)"])
        try await child.expect("ready")
    }

    /// Stands still: reads nothing, and its connection stays.
    func stop() { kill(child.process.processIdentifier, SIGSTOP) }

    func goOn() { kill(child.process.processIdentifier, SIGCONT) }

    /// What they got of a batch that `begin` sets off.
    func batch(_ count: Int, _ begin: () async throws -> Void) async throws -> Result {
        try child.say("batch \(count)")
        try await child.expect("go")
        try await begin()
        return Result(json: try JSON(parsing: try await child.line()))
    }
}
