import Basics
import CZeroMQ
import Contracts
import Foundation
import Hosting
import JSONValue
import Messaging
import PhotoModel
import TestSupport

/// The attacks of a hostile client on the services. Each is repeated until its time has elapsed, on threads of its own.
enum Attack: String, CaseIterable, Sendable {
    /// Images of the largest size that may be requested, in the most expensive format.
    case enormousImages
    /// Requests of 16 MiB, as many as one connection may have open.
    case largeRequests
    /// Subscriptions to a thousand topics of 64 KiB.
    case subscriptions
    /// Connections over TCP that never finish their handshake, and some that do.
    case connections
    /// Observed fetches, each of them different.
    case observedFetches
    /// Transactions that change every asset.
    case bulkChanges
    /// Requests with 9 MiB of JSON.
    case largeJSON

    /// The attacks to run: all, or those named in `SAFELIGHT_ATTACKS`, separated by commas; `none` for none.
    static let chosen: [Attack] =
        TestEnvironment.text("SAFELIGHT_ATTACKS").map {
            $0.split(separator: ",").compactMap { Attack(rawValue: "\($0)") }
        }
        ?? allCases

    /// Attacks until the time has elapsed.
    ///
    /// - Returns: the number of messages or connections
    func run(_ target: AttackTarget, until end: Date) async -> Int {
        switch self {
        case .enormousImages: await runOnThread { Self.requestEnormousImages(target, end) }
        case .largeRequests: await runOnThread { Self.sendLargeRequests(target, end) }
        case .subscriptions: await runOnThread { Self.subscribeToManyTopics(target, end) }
        case .connections: await runOnThread { Self.openConnections(target, end) }
        case .observedFetches: await runOnThread { Self.observeFetches(target, end) }
        case .bulkChanges: await runOnThread { Self.changeAllAssets(target, end) }
        case .largeJSON: await runOnThread { Self.sendLargeJSON(target, end) }
        }
    }

    private func runOnThread(_ body: @escaping @Sendable () -> Int) async -> Int {
        await withCheckedContinuation { continuation in
            Thread.detachNewThread { continuation.resume(returning: body()) }
        }
    }

    private static func request(_ id: Int, _ method: String, _ params: String) -> Bytes {
        Bytes(#"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":\#(params)}"#.utf8)
    }

    private static func requestEnormousImages(_ target: AttackTarget, _ end: Date) -> Int {
        var random = target.random
        let flood = RequestFlood([target.socket("thumbnailer")], outstanding: 16)
        return flood.run(until: end) { id in
            let (width, height) = (
                Int.random(in: 8000...16_000, using: &random), Int.random(in: 8000...16_000, using: &random)
            )
            let params = """
                {"asset":"\(random.pick(target.assets).text)","targetSize":{"width":\(width),"height":\(height)},
                 "resizeMode":"exact","contentMode":"aspectFill","format":"avif","quality":100}
                """
            return [request(id, "image.request", params)]
        }
    }

    private static func sendLargeRequests(_ target: AttackTarget, _ end: Date) -> Int {
        let attachment = Bytes(repeating: 7, count: (8 << 20) - 4096)
        let flood = RequestFlood(["catalog", "editor", "thumbnailer"].map(target.socket), outstanding: 256, queued: 2)
        let create =
            #"{"requests":[{"type":"asset.create","resources":[{"attachment":0},{"type":"alternatePhoto","attachment":1}]}]}"#
        return flood.run(until: end) { id in
            let method = id % 2 == 0 ? "changes.perform" : "health"
            return [request(id, method, id % 2 == 0 ? create : "{}"), attachment, attachment]
        }
    }

    private static func subscribeToManyTopics(_ target: AttackTarget, _ end: Date) -> Int {
        var sent = 0
        var random = target.random
        while Date() < end {
            guard let peer = try? RawZMTP(path: target.services.folder.file("run/feed.sock")) else { break }
            peer.greet(as: "SUB")
            for _ in 0..<1000 where Date() < end {
                let start = (0..<16).map { _ in UInt8.random(in: 33...126, using: &random) }
                let topic = [1] + start + [UInt8](repeating: 65, count: (64 << 10) - 16)
                guard peer.send(RawZMTP.head(length: UInt64(topic.count), more: false) + topic) else {
                    break
                }
                sent += 1
            }
        }
        return sent
    }

    private static func openConnections(_ target: AttackTarget, _ end: Date) -> Int {
        var sockets: [Int32] = []
        var admitted: [RawCurve] = []
        var count = 0
        defer { for socket in sockets { close(socket) } }
        // Connections with a listed key come first, while there are free descriptors; a port is left after its first
        // failure.
        if let server = CurvePublicKey(target.keys.server) {
            for port in target.ports {
                for _ in 0..<10 where Date() < end {
                    guard let peer = try? RawCurve(port: port, as: "DEALER", server: server, pair: target.keys.pair)
                    else { break }
                    admitted.append(peer)
                }
            }
        }
        while Date() < end {
            for port in target.ports {
                for _ in 0..<20 {
                    guard let socket = Self.connect(port) else { continue }
                    sockets.append(socket)
                    count += 1
                }
            }
            if sockets.count > 1500 {
                for socket in sockets.prefix(500) { close(socket) }
                sockets.removeFirst(500)
            }
            // This is as fast as a service could accept them all, and leaves the processor to the other threads.
            usleep(20_000)
        }
        return count + admitted.count
    }

    /// Opens a connection without waiting for it, and sends the beginning of a greeting.
    private static func connect(_ port: UInt16) -> Int32? {
        let kind = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let descriptor = socket(AF_INET, kind, 0)
        guard descriptor >= 0 else { return nil }
        var name = sockaddr_in()
        name.sin_family = sa_family_t(AF_INET)
        name.sin_port = port.bigEndian
        name.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
        _ = withUnsafePointer(to: &name) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        let start: [UInt8] = [0xFF, 0, 0, 0]
        _ = send(descriptor, start, start.count, Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT))
        return descriptor
    }

    private static func observeFetches(_ target: AttackTarget, _ end: Date) -> Int {
        let flood = RequestFlood([target.socket("change-broker")], outstanding: 32)
        return flood.run(until: end) { id in
            let fetch =
                #"{"predicate":"rating >= \#(id % 5) AND pixelWidth > \#(id % 100_000)","limit":\#(1 + id % 1000)}"#
            return [request(id, "fetch.observe", #"{"fetch":\#(fetch),"token":"\#(target.token)"}"#)]
        }
    }

    private static func changeAllAssets(_ target: AttackTarget, _ end: Date) -> Int {
        let flood = RequestFlood([target.socket("catalog")], outstanding: 64)
        let bodies = (0..<6).map { rating in
            let changes = target.assets.map {
                #"{"type":"asset.update","id":"\#($0.text)","set":{"rating":\#(rating)}}"#
            }
            return #"{"requests":[\#(changes.joined(separator: ","))]}"#
        }
        return flood.run(until: end) { id in [request(id, "changes.perform", bodies[id % bodies.count])] }
    }

    private static func sendLargeJSON(_ target: AttackTarget, _ end: Date) -> Int {
        let names = ["catalog", "change-broker", "thumbnailer", "editor"]
        let flood = RequestFlood(names.map(target.socket), outstanding: 4, queued: 2)
        let numbers = "[" + String(repeating: "0,", count: 9 << 19) + "0]"
        let objects = "[" + String(repeating: #"{"a":[]},"#, count: 1 << 20) + "{}]"
        return flood.run(until: end) { id in
            [request(id, "fetch.assets", #"{"fetch":{},"x":\#(id % 2 == 0 ? numbers : objects)}"#)]
        }
    }
}

/// The services under attack, and what the hostile client knows about them.
struct AttackTarget: Sendable {
    let services: SafelightFixture
    /// The services' TCP ports; the attacker has a listed key.
    let ports: [UInt16]
    let keys: Keys
    let assets: [ObjectID]
    let token: String
    let random: SeededRandom

    func socket(_ name: String) -> String { "ipc://" + services.folder.file("run") + "/\(name).sock" }
}

/// Requests on a few connections, each with the allowed number open, whether they are answered or not.
private final class RequestFlood {
    private struct Connection {
        let address: String
        var socket: UnsafeMutableRawPointer?
        var open = 0
        var heardAt = Date()
    }

    private let context = zmq_ctx_new()
    private let outstanding: Int
    private let queued: Int32
    private var connections: [Connection]

    /// - Parameter queued: libzmq's send queue for each connection, in messages, which may be large
    init(_ addresses: [String], outstanding: Int, queued: Int32 = 300) {
        self.outstanding = outstanding
        self.queued = queued
        connections = addresses.map { Connection(address: $0) }
    }

    deinit {
        for connection in connections { zmq_close(connection.socket) }
        zmq_ctx_term(context)
    }

    /// Sends requests until the time has elapsed, and returns their number.
    func run(until end: Date, _ message: (Int) -> [Bytes]) -> Int {
        var count = 0
        while Date() < end {
            var isIdle = true
            for index in connections.indices {
                connect(&connections[index])
                for _ in 0..<8 where connections[index].open < outstanding && Date() < end {
                    guard send(message(count + 1), connections[index].socket) else { break }
                    count += 1
                    connections[index].open += 1
                    isIdle = false
                }
                while let isAnswer = receive(connections[index].socket) {
                    if isAnswer { connections[index].open -= 1 }
                    connections[index].heardAt = Date()
                    isIdle = false
                }
            }
            if isIdle { wait() }
        }
        return count
    }

    /// Opens a connection if there is none, and replaces one whose requests are all open without a message for 3
    /// seconds.
    private func connect(_ connection: inout Connection) {
        let isSilent = connection.open >= outstanding && Date().timeIntervalSince(connection.heardAt) > 3
        guard connection.socket == nil || isSilent else { return }
        zmq_close(connection.socket)
        let socket = zmq_socket(context, ZMQ_DEALER)
        for (option, value) in [(ZMQ_LINGER, 0), (ZMQ_SNDHWM, queued)] {
            var value = Int32(value)
            zmq_setsockopt(socket, option, &value, MemoryLayout<Int32>.size)
        }
        zmq_connect(socket, connection.address)
        connection.socket = socket
        connection.open = 0
        connection.heardAt = Date()
    }

    private func send(_ frames: [Bytes], _ socket: UnsafeMutableRawPointer?) -> Bool {
        for (index, frame) in frames.enumerated() {
            let flags = ZMQ_DONTWAIT | (index + 1 < frames.count ? ZMQ_SNDMORE : 0)
            guard zmq_send(socket, frame, frame.count, flags) >= 0 else { return false }
        }
        return true
    }

    /// Returns true if the next message that has arrived is a response; nil if none has arrived.
    private func receive(_ socket: UnsafeMutableRawPointer?) -> Bool? {
        var isFirst = true
        var isAnswer = false
        while true {
            var frame = zmq_msg_t()
            zmq_msg_init(&frame)
            defer { zmq_msg_close(&frame) }
            guard zmq_msg_recv(&frame, socket, isFirst ? ZMQ_DONTWAIT : 0) >= 0 else { return nil }
            if isFirst {
                let bytes = UnsafeRawBufferPointer(start: zmq_msg_data(&frame), count: min(64, zmq_msg_size(&frame)))
                isAnswer = !String(decoding: bytes, as: UTF8.self).contains(#""method""#)
                isFirst = false
            }
            if zmq_msg_more(&frame) == 0 { return isAnswer }
        }
    }

    /// Waits until something arrives on the first connection, at most 20 ms.
    private func wait() {
        var item = zmq_pollitem_t(socket: connections[0].socket, fd: 0, events: Int16(ZMQ_POLLIN), revents: 0)
        zmq_poll(&item, 1, 20)
    }
}
