import ArgumentParser
import Foundation
import Glibc
import TestSupport

/// Another product's server, in a process of its own. Only JetStream stores messages on disk.
final class WireBroker {
    let server: WireServer
    private(set) var endpoint = ""
    private let child: Child

    /// Returns the path of a server's program; nil if it is not installed.
    static func program(_ server: WireServer) -> String? {
        TestPaths.program(server.program)
            ?? ["/usr/bin/", "/usr/sbin/"].map { $0 + server.program }
            .first { FileManager.default.isExecutableFile(atPath: $0) }
    }

    /// Returns the reason why a benchmark is skipped if the server is not installed.
    static func missingText(_ server: WireServer) -> String {
        "\(server.program) is not installed (Debian: \(server.program))"
    }

    /// Starts the server and waits until it accepts connections.
    init(_ server: WireServer, program: String, in folder: String) async throws {
        self.server = server
        let options: [String]
        switch server {
        case .redis:
            endpoint = "\(folder)/redis.sock"
            options = [
                "--port", "0", "--unixsocket", endpoint, "--save", "", "--appendonly", "no", "--dir", folder,
                // Without a limit the server stores all unread messages, so that subscribers lose none.
                "--client-output-buffer-limit", "pubsub 0 0 0", "--logfile", "\(folder)/redis.log",
            ]
        case .nats, .jetStream:
            options =
                ["-a", "127.0.0.1", "-p", "-1", "--ports_file_dir", folder, "-l", "\(folder)/nats.log"]
                + (server == .jetStream ? ["-js", "-sd", "\(folder)/streams"] : [])
        }
        child = try Child(options, program: program, endSignal: SIGKILL)
        for _ in 0..<500 {
            if server != .redis { endpoint = Self.port(in: folder) ?? "" }
            if let socket = try? WireSocket(server, endpoint) {
                if server == .jetStream { try Self.createStream(socket) }
                return
            }
            try await Task.sleep(for: .milliseconds(20))
        }
        throw BenchmarkError("\(program) does not start")
    }

    /// Returns the port that NATS chose.
    private static func port(in folder: String) -> String? {
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        guard let file = files.first(where: { $0.hasSuffix(".ports") }),
            let text = try? String(contentsOfFile: "\(folder)/\(file)", encoding: .utf8)
        else { return nil }
        return text.split(separator: ":").last.map { String($0.prefix(while: \.isNumber)) }
    }

    /// Publishes messages as fast as the server accepts them.
    static func publishBurst(_ count: Int, _ frame: [UInt8], to server: WireServer, _ endpoint: String) throws {
        var frame = frame
        let socket = try WireSocket(server, endpoint)
        var sequence = frame.withUnsafeBytes { LiveFrame.number(LiveFrame.sequence, in: $0) } ?? 0
        var remaining = count
        while remaining > 0 {
            // The number of requests that the server has not yet read is limited, like libzmq's queue.
            let batch = min(remaining, 1000)
            var bytes: [UInt8] = []
            for number in 1...batch {
                sequence += 1
                LiveFrame.write(sequence, to: LiveFrame.sequence, in: &frame)
                bytes += message(frame, to: server)
                guard bytes.count > 64 << 10 || number == batch else { continue }
                try socket.send(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
            remaining -= batch
            switch server {
            case .redis: for _ in 0..<batch { try socket.wait { _ in } }
            case .nats, .jetStream: try synchronize(socket)
            }
        }
    }

    /// Publishes messages at a fixed rate, each with the time at which it is sent.
    static func publish(
        _ count: Int,
        perSecond: Int,
        _ frame: [UInt8],
        to server: WireServer,
        _ endpoint: String
    ) throws {
        var frame = frame
        let socket = try WireSocket(server, endpoint)
        var sequence = frame.withUnsafeBytes { LiveFrame.number(LiveFrame.sequence, in: $0) } ?? 0
        let start = Clocks.microseconds()
        for number in 0..<count {
            Peer.sleep(until: start + Int64(number) * 1_000_000 / Int64(perSecond))
            sequence += 1
            LiveFrame.write(sequence, to: LiveFrame.sequence, in: &frame)
            LiveFrame.write(Clocks.wallMicroseconds(), to: LiveFrame.date, in: &frame)
            try socket.send(message(frame, to: server))
        }
        if server != .redis { try synchronize(socket) }
    }

    /// Returns the bytes that publish a message.
    private static func message(_ frame: [UInt8], to server: WireServer) -> [UInt8] {
        switch server {
        case .redis: WireSocket.encodeCommand([Array("PUBLISH".utf8), Array("changes".utf8), frame])
        case .nats, .jetStream: Array("PUB changes \(frame.count)\r\n".utf8) + frame + [0x0D, 0x0A]
        }
    }

    /// Creates the stream of JetStream that stores all messages in files.
    private static func createStream(_ socket: WireSocket) throws {
        try request(
            "$JS.API.STREAM.CREATE.CHANGES",
            #"{"name":"CHANGES","subjects":["changes"],"storage":"file","retention":"limits","num_replicas":1}"#,
            over: socket
        )
    }

    /// Creates a consumer of JetStream that pushes each new message of the stream to a subject.
    static func createConsumer(deliveringTo subject: String, _ socket: WireSocket) throws {
        let config = #"{"deliver_subject":"\#(subject)","deliver_policy":"new","ack_policy":"none"}"#
        try request(
            "$JS.API.CONSUMER.CREATE.CHANGES",
            #"{"stream_name":"CHANGES","config":\#(config)}"#,
            over: socket
        )
    }

    /// Sends a request of JetStream's API and waits for its response.
    private static func request(_ subject: String, _ body: String, over socket: WireSocket) throws {
        let inbox = "inbox.\(UUID().uuidString)"
        let lines = "SUB \(inbox) 9\r\nPUB \(subject) \(inbox) \(body.utf8.count)\r\n\(body)\r\nUNSUB 9 1\r\n"
        try socket.send(Array(lines.utf8))
        while true {
            let response = try socket.wait { piece -> String? in
                guard case .bytes(let bytes) = piece else { return nil }
                return String(decoding: bytes, as: UTF8.self)
            }
            guard let response else { continue }
            guard !response.contains(#""error""#) else { throw BenchmarkError("JetStream responds \(response)") }
            return
        }
    }

    /// Waits until NATS has read everything that was sent before.
    static func synchronize(_ socket: WireSocket) throws {
        try socket.send(Array("PING\r\n".utf8))
        while try !socket.wait({ piece in
            guard case .line(let line) = piece else { return false }
            return line.elementsEqual("PONG".utf8)
        }) {}
    }
}

/// `Benchmarks peer-wire`: bare subscribers of another product's server on one thread, like those of `peer-subscribe`.
struct WireCommand: ParsableCommand {
    static let configuration = CommandConfiguration(commandName: "peer-wire", shouldDisplay: false)

    @Option var server: WireServer
    @Option var endpoint: String
    @Option var subscribers: Int

    func run() throws {
        let sockets = try (0..<subscribers).map { _ in try WireSocket(server, endpoint) }
        for socket in sockets {
            switch server {
            case .redis:
                try socket.sendCommand("SUBSCRIBE", "changes")
                // The reply is a list of three: its kind, the channel and the number of subscriptions.
                for _ in 0..<4 { try socket.wait { _ in } }
            case .nats:
                try socket.send(Array("SUB changes 1\r\n".utf8))
                try WireBroker.synchronize(socket)
            case .jetStream:
                let subject = "deliver.\(UUID().uuidString)"
                try socket.send(Array("SUB \(subject) 1\r\n".utf8))
                try WireBroker.createConsumer(deliveringTo: subject, socket)
            }
        }
        var items = sockets.map { pollfd(fd: $0.descriptor, events: Int16(POLLIN), revents: 0) }
        // A Redis message has three texts; the last is its content.
        var textCounts = Array(repeating: 0, count: subscribers)
        Peer.send("ready")
        try Peer.measureBatches(subscribers: subscribers) { batch in
            guard poll(&items, nfds_t(items.count), Int32(Peer.timeout)) > 0 else { return }
            for (index, socket) in sockets.enumerated() where items[index].revents != 0 {
                try socket.fill(wait: false)
                while try socket.next({ (piece) -> Void in
                    switch piece {
                    case .list: textCounts[index] = 0
                    case .bytes(let frame):
                        textCounts[index] += 1
                        if server != .redis || textCounts[index] == 3 { batch.record(index, frame) }
                    case .line: break
                    }
                }) != nil {}
            }
        }
    }
}
