import ArgumentParser
import CZeroMQ
import Foundation
import JSONValue

/// `Benchmarks peer-echo`: bare ROUTER that answers every message with the same bytes.
struct EchoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peer-echo", shouldDisplay: false)

    @Option var endpoint: String
    @Option var replyBytes: Int

    func run() throws {
        let socket = try BareSocket(ZMQ_ROUTER, BareContext(), highWaterMark: 100_000)
        try socket.bind(endpoint)
        Peer.say("ready")
        Peer.endWithInput()
        let reply = [UInt8](repeating: 0x78, count: replyBytes)
        while true {
            guard let (routing, _) = try socket.receive({ [UInt8]($0) }) else { continue }
            while let (_, more) = try socket.receive({ _ in }), more {}
            try socket.send(routing, more: true)
            try socket.send(reply)
        }
    }
}

/// `Benchmarks peer-publish`: bare XPUB that loses nothing. Commands come by standard input: `burst COUNT` and
/// `rate COUNT PER-SECOND`.
struct PublishCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peer-publish", shouldDisplay: false)

    @Option var endpoint: String
    @Option(help: "A file with the JSON frame that is published.")
    var frame: String

    func run() throws {
        let socket = try BareSocket(ZMQ_XPUB, BareContext())
        try socket.set(ZMQ_XPUB_NODROP, 1)
        try socket.set(ZMQ_XPUB_VERBOSE, 1)
        try socket.bind(endpoint)
        Peer.say("ready")
        var frame = [UInt8](try Data(contentsOf: URL(fileURLWithPath: frame)))
        let first = frame.withUnsafeBytes { LiveFrame.number(LiveFrame.sequence, in: $0) } ?? 0
        var sequence = first
        while let command = try Peer.nextCommand(while: socket) {
            let words = command.split(separator: " ")
            guard words.count >= 2, let count = Int(words[1]) else { continue }
            let pause = words.count > 2 ? 1_000_000 / (Int64(words[2]) ?? 1000) : 0
            var due = Clocks.microseconds()
            for _ in 0..<count {
                sequence += 1
                LiveFrame.write(sequence, to: LiveFrame.sequence, in: &frame)
                if pause > 0 {
                    Peer.pause(until: due)
                    due += pause
                    LiveFrame.write(Clocks.wallMicroseconds(), to: LiveFrame.date, in: &frame)
                }
                try socket.send("changes", more: true)
                try socket.send(frame)
            }
        }
    }
}

/// `Benchmarks peer-subscribe`: bare SUB sockets on one thread. The command `batch COUNT` waits for as many messages on
/// each of them and tells what came.
struct SubscribeCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peer-subscribe", shouldDisplay: false)

    @Option var endpoint: String
    @Option var subscribers: Int

    func run() throws {
        let context = try BareContext()
        let sockets = try (0..<subscribers).map { _ in
            let socket = try BareSocket(ZMQ_SUB, context)
            try socket.subscribe("changes")
            try socket.subscribe("head")
            try socket.connect(endpoint)
            return socket
        }
        var items = sockets.map { zmq_pollitem_t(socket: $0.pointer, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0) }
        // Who has heard a head hears everything after it.
        for socket in sockets {
            while true {
                let isHead = try socket.receive { $0.count == 4 }?.value ?? false
                while let (_, more) = try socket.receive({ _ in }), more {}
                if isHead { break }
            }
        }
        Peer.say("ready")
        while let command = readLine() {
            guard let count = command.split(separator: " ").last.flatMap({ Int($0) }) else { continue }
            var batch = Batch(subscribers: subscribers, count: count)
            Peer.say("go")
            while !batch.isDone {
                let found = zmq_poll(&items, Int32(items.count), 3000)
                if found == 0 { break }
                for (index, socket) in sockets.enumerated() where items[index].revents != 0 {
                    for _ in 0..<64 { guard try batch.take(index, socket) else { break } }
                }
            }
            Peer.say(batch.json.text)
        }
    }
}

/// What the subscribers got of one batch.
private struct Batch {
    let count: Int
    private var received: [Int]
    private var last: [Int64]
    private var lost = 0
    private var delivered = 0
    private var bytes = 0
    private var first: Int64 = 0
    private var newest: Int64 = 0
    private var delays: [Int64] = []
    private var open: Int

    init(subscribers: Int, count: Int) {
        self.count = count
        received = Array(repeating: 0, count: subscribers)
        last = Array(repeating: 0, count: subscribers)
        open = subscribers
    }

    var isDone: Bool { open == 0 }

    /// Takes one message; false where there is none.
    mutating func take(_ index: Int, _ socket: BareSocket) throws -> Bool {
        guard let (isChange, _) = try socket.receive(wait: false, { $0.count == 7 }) else { return false }
        guard isChange else {
            while let (_, more) = try socket.receive({ _ in }), more {}
            return true
        }
        let now = Clocks.microseconds()
        guard
            let (numbers, _) = try socket.receive({ frame in
                bytes = frame.count
                return (
                    LiveFrame.number(LiveFrame.sequence, in: frame) ?? 0, LiveFrame.number(LiveFrame.date, in: frame)
                )
            })
        else { return false }
        if first == 0 { first = now }
        newest = now
        let missed = last[index] == 0 ? 0 : Int(numbers.0 - last[index] - 1)
        last[index] = numbers.0
        lost += missed
        delivered += 1
        if delays.count < 1_000_000, let date = numbers.1 { delays.append(Clocks.wallMicroseconds() - date) }
        let isOpen = received[index] < count
        received[index] += 1 + missed
        if isOpen, received[index] >= count { open -= 1 }
        return true
    }

    var json: JSON {
        let sorted = delays.sorted()
        func delay(_ part: Double) -> JSON { .int(sorted.isEmpty ? 0 : sorted[Int(Double(sorted.count - 1) * part)]) }
        return [
            "delivered": JSON(delivered), "lost": JSON(max(lost, received.count * count - delivered)),
            "microseconds": .int(newest - first), "bytes": JSON(bytes), "p50": delay(0.5), "p99": delay(0.99),
            "slowest": delay(1),
        ]
    }
}

/// What the peers have in common.
enum Peer {
    /// A line to whoever started this process.
    static func say(_ line: String) {
        print(line)
        fflush(nil)
    }

    /// Ends this process when its standard input ends: a peer never outlives the benchmark.
    static func endWithInput() {
        Thread.detachNewThread {
            while readLine() != nil {}
            _exit(0)
        }
    }

    /// The next line of the standard input, answering new subscribers of a publisher meanwhile.
    static func nextCommand(while socket: BareSocket) throws -> String? {
        var items = [
            zmq_pollitem_t(socket: socket.pointer, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0),
            zmq_pollitem_t(socket: nil, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0),
        ]
        while true {
            zmq_poll(&items, 2, -1)
            if items[0].revents != 0 {
                while try socket.receive(wait: false, { _ in }) != nil {
                    try socket.send("head", more: true)
                    try socket.send("{}")
                }
            }
            if items[1].revents != 0 { return readLine() }
        }
    }

    /// Waits until a moment of the monotonic clock.
    static func pause(until due: Int64) {
        let left = due - Clocks.microseconds()
        guard left > 0 else { return }
        var time = timespec(tv_sec: 0, tv_nsec: Int(left) * 1000)
        nanosleep(&time, nil)
    }
}
