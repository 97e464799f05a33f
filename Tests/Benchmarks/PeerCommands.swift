import ArgumentParser
import CZeroMQ
import Foundation
import JSONValue

/// `Benchmarks peer-echo`: a bare ROUTER that answers every message with the same bytes.
struct EchoCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peer-echo", shouldDisplay: false)

    @Option var endpoint: String
    @Option var replyBytes: Int

    func run() throws {
        let socket = try BareSocket(ZMQ_ROUTER, BareContext(), highWaterMark: 100_000)
        try socket.bind(endpoint)
        Peer.send("ready")
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

/// `Benchmarks peer-publish`: a bare XPUB that loses nothing. Commands arrive on standard input: `burst COUNT` and
/// `rate COUNT PER-SECOND`.
struct PublishCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peer-publish", shouldDisplay: false)

    @Option var endpoint: String
    @Option(help: "A file with the JSON frame to publish.")
    var frame: String

    func run() throws {
        let socket = try BareSocket(ZMQ_XPUB, BareContext())
        try socket.set(ZMQ_XPUB_NODROP, 1)
        try socket.set(ZMQ_XPUB_VERBOSE, 1)
        try socket.bind(endpoint)
        Peer.send("ready")
        var frame = [UInt8](try Data(contentsOf: URL(fileURLWithPath: frame)))
        let first = frame.withUnsafeBytes { LiveFrame.number(LiveFrame.sequence, in: $0) } ?? 0
        var sequence = first
        while let command = try Peer.nextCommand(answering: socket) {
            let words = command.split(separator: " ")
            guard words.count >= 2, let count = Int(words[1]) else { continue }
            let interval = words.count > 2 ? 1_000_000 / (Int64(words[2]) ?? 1000) : 0
            var due = Clocks.microseconds()
            for _ in 0..<count {
                sequence += 1
                LiveFrame.write(sequence, to: LiveFrame.sequence, in: &frame)
                if interval > 0 {
                    Peer.sleep(until: due)
                    due += interval
                    LiveFrame.write(Clocks.wallMicroseconds(), to: LiveFrame.date, in: &frame)
                }
                try socket.send("changes", more: true)
                try socket.send(frame)
            }
        }
    }
}

/// `Benchmarks peer-subscribe`: bare SUB sockets on one thread. The command `batch COUNT` waits for COUNT messages on
/// each of them and prints figures about those that arrived.
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
        // A subscriber that has received a head message receives everything after it.
        for socket in sockets {
            while true {
                let isHead = try socket.receive { $0.count == 4 }?.value ?? false
                while let (_, more) = try socket.receive({ _ in }), more {}
                if isHead { break }
            }
        }
        Peer.send("ready")
        try Peer.measureBatches(subscribers: subscribers) { batch in
            guard zmq_poll(&items, Int32(items.count), Peer.timeout) > 0 else { return }
            for (index, socket) in sockets.enumerated() where items[index].revents != 0 {
                for _ in 0..<64 { guard try Self.receive(index, socket, into: &batch) else { break } }
            }
        }
    }

    /// Receives one message; returns false if there is none.
    private static func receive(_ index: Int, _ socket: BareSocket, into batch: inout Batch) throws -> Bool {
        guard let (isChange, _) = try socket.receive(wait: false, { $0.count == 7 }) else { return false }
        if isChange { return try socket.receive({ batch.record(index, $0) }) != nil }
        while let (_, more) = try socket.receive({ _ in }), more {}
        return true
    }
}

/// Functions that the peers share.
enum Peer {
    /// Prints a line for the parent process.
    static func send(_ line: String) {
        print(line)
        fflush(nil)
    }

    /// The longest time that subscribers wait for a message before they check whether the batch is done, in
    /// milliseconds.
    static let timeout = 500

    /// Measures the batches that are requested on standard input.
    ///
    /// - Parameter step: records what has arrived, and waits at most ``timeout`` for it
    static func measureBatches(subscribers: Int, step: (inout Batch) throws -> Void) throws {
        while let command = readLine() {
            guard let count = command.split(separator: " ").last.flatMap({ Int($0) }) else { continue }
            var batch = Batch(subscribers: subscribers, count: count)
            send("go")
            while !batch.isDone { try step(&batch) }
            send(batch.json.text)
        }
    }

    /// Ends this process when its standard input ends, so that it does not outlive the benchmark.
    static func endWithInput() {
        Thread.detachNewThread {
            while readLine() != nil {}
            _exit(0)
        }
    }

    /// Returns the next line of standard input. Until it arrives, new subscribers of a publisher get a head message.
    static func nextCommand(answering socket: BareSocket) throws -> String? {
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

    /// Sleeps until a time of the monotonic clock, in microseconds.
    static func sleep(until due: Int64) {
        let remaining = due - Clocks.microseconds()
        guard remaining > 0 else { return }
        var time = timespec(tv_sec: 0, tv_nsec: Int(remaining) * 1000)
        nanosleep(&time, nil)
    }
}
