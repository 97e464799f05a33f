import Foundation

/// A peer that implements CURVE (ZeroMQ RFC 26) byte by byte: an admitted client that can send bytes that libzmq
/// would not.
///
/// The cryptographic functions are libsodium's, which is installed with libzmq.
public final class RawCurve: Sendable {
    private let peer: RawZMTP
    private let boxes: Sodium
    /// The shared secret with the server's short-term key, for both directions.
    private let shared: [UInt8]
    private let nonce = AwaitableValue<UInt64>(3)

    /// The reason why there is no connection.
    public enum Failure: Error, Sendable {
        /// libsodium cannot be loaded.
        case noBoxes
        /// The server closed the connection or sent an error during the handshake.
        case refused
    }

    /// Connects and completes the handshake.
    ///
    /// - Parameters:
    ///   - socketType: the declared socket type, such as "DEALER"
    ///   - server: the server's public key, 32 bytes
    ///   - publicKey: the client's public key, 32 bytes
    ///   - secretKey: the client's secret key, 32 bytes
    public init(port: UInt16, as socketType: String, server: [UInt8], publicKey: [UInt8], secretKey: [UInt8]) throws {
        guard let boxes = Sodium() else { throw Failure.noBoxes }
        self.boxes = boxes
        peer = try RawZMTP(port: port)
        peer.setSendTimeout(seconds: 3)
        var greeting: [UInt8] = [0xFF, 0, 0, 0, 0, 0, 0, 0, 0, 0x7F, 3, 0] + Array("CURVE".utf8)
        greeting += [UInt8](repeating: 0, count: 64 - greeting.count)
        guard peer.send(greeting), peer.read(64) != nil else { throw Failure.refused }
        let (short, shortSecret) = boxes.pair()

        let proof = boxes.seal(
            [UInt8](repeating: 0, count: 64),
            boxes.shared(server, shortSecret),
            "CurveZMQHELLO---",
            [0, 0, 0, 0, 0, 0, 0, 1]
        )
        let hello = Self.name("HELLO") + [1, 0] + [UInt8](repeating: 0, count: 72) + short + [0, 0, 0, 0, 0, 0, 0, 1]
        peer.send([4, UInt8(hello.count + proof.count)] + hello + proof)

        guard let welcome = Self.command("WELCOME", from: peer), welcome.count == 160,
            let inside = boxes.open(
                Array(welcome[16...]),
                boxes.shared(server, shortSecret),
                "WELCOME-",
                Array(welcome[..<16])
            ), inside.count == 128
        else { throw Failure.refused }
        let (serverShort, cookie) = (Array(inside[..<32]), Array(inside[32...]))
        shared = boxes.shared(serverShort, shortSecret)

        let vouchNonce = boxes.random(16)
        let vouch = boxes.seal(short + server, boxes.shared(serverShort, secretKey), "VOUCH---", vouchNonce)
        let type = Array(socketType.utf8)
        let properties = [11] + Array("Socket-Type".utf8) + [0, 0, 0, UInt8(type.count)] + type
        let box = boxes.seal(
            publicKey + vouchNonce + vouch + properties,
            shared,
            "CurveZMQINITIATE",
            [0, 0, 0, 0, 0, 0, 0, 2]
        )
        let initiate = Self.name("INITIATE") + cookie + [0, 0, 0, 0, 0, 0, 0, 2] + box
        peer.send([6] + RawZMTP.head(length: UInt64(initiate.count), more: false).dropFirst() + initiate)
        guard Self.command("READY", from: peer) != nil else { throw Failure.refused }
    }

    /// Sends a frame. Returns false if the connection is closed.
    @discardableResult
    public func send(_ payload: [UInt8], more: Bool) -> Bool {
        let number = nonce.withLock { number in
            defer { number += 1 }
            return (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64(56 - 8 * $0)) }
        }
        let box = boxes.seal([more ? 1 : 0] + payload, shared, "CurveZMQMESSAGEC", number)
        let message = Self.name("MESSAGE") + number + box
        return peer.send(RawZMTP.head(length: UInt64(message.count), more: false) + message)
    }

    /// Sends bytes unencrypted.
    @discardableResult
    public func sendPlain(_ bytes: [UInt8]) -> Bool { peer.send(bytes) }

    /// Reads until the server closes the connection. Returns false if it does not within the time.
    public func waitForEnd(seconds: Int) -> Bool { peer.waitForEnd(seconds: seconds) }

    private static func name(_ name: String) -> [UInt8] { [UInt8(name.utf8.count)] + Array(name.utf8) }

    /// Returns the content of the next command if it is the expected one.
    private static func command(_ expected: String, from peer: RawZMTP) -> [UInt8]? {
        guard let flags = peer.read(1)?.first else { return nil }
        let length: Int
        if flags & 2 == 0 {
            guard let short = peer.read(1)?.first else { return nil }
            length = Int(short)
        } else {
            guard let long = peer.read(8) else { return nil }
            length = long.reduce(0) { $0 << 8 | Int($1) }
        }
        let head = name(expected)
        guard length < 65_536, let body = peer.read(length), body.starts(with: head) else { return nil }
        return Array(body[head.count...])
    }
}

/// The functions used from libsodium.
private struct Sodium: Sendable {
    private typealias Pair = @convention(c) (UnsafeMutablePointer<UInt8>, UnsafeMutablePointer<UInt8>) -> Int32
    private typealias Shared =
        @convention(c) (UnsafeMutablePointer<UInt8>, UnsafePointer<UInt8>, UnsafePointer<UInt8>) -> Int32
    private typealias Box =
        @convention(c) (
            UnsafeMutablePointer<UInt8>, UnsafePointer<UInt8>, UInt64, UnsafePointer<UInt8>, UnsafePointer<UInt8>
        ) -> Int32
    private let makePair: Pair
    private let makeShared: Shared
    private let makeBox: Box
    private let openBox: Box

    init?() {
        guard let library = dlopen("libsodium.so.23", RTLD_NOW), let pair = dlsym(library, "crypto_box_keypair"),
            let shared = dlsym(library, "crypto_box_beforenm"), let box = dlsym(library, "crypto_box_easy_afternm"),
            let open = dlsym(library, "crypto_box_open_easy_afternm")
        else { return nil }
        makePair = unsafeBitCast(pair, to: Pair.self)
        makeShared = unsafeBitCast(shared, to: Shared.self)
        makeBox = unsafeBitCast(box, to: Box.self)
        openBox = unsafeBitCast(open, to: Box.self)
    }

    func pair() -> (publicKey: [UInt8], secretKey: [UInt8]) {
        var (publicKey, secretKey) = ([UInt8](repeating: 0, count: 32), [UInt8](repeating: 0, count: 32))
        _ = makePair(&publicKey, &secretKey)
        return (publicKey, secretKey)
    }

    func random(_ count: Int) -> [UInt8] { (0..<count).map { _ in UInt8.random(in: 0...255) } }

    func shared(_ publicKey: [UInt8], _ secretKey: [UInt8]) -> [UInt8] {
        var key = [UInt8](repeating: 0, count: 32)
        _ = makeShared(&key, publicKey, secretKey)
        return key
    }

    func seal(_ text: [UInt8], _ key: [UInt8], _ prefix: String, _ nonce: [UInt8]) -> [UInt8] {
        var box = [UInt8](repeating: 0, count: text.count + 16)
        _ = makeBox(&box, text, UInt64(text.count), Array(prefix.utf8) + nonce, key)
        return box
    }

    func open(_ box: [UInt8], _ key: [UInt8], _ prefix: String, _ nonce: [UInt8]) -> [UInt8]? {
        guard box.count >= 16 else { return nil }
        var text = [UInt8](repeating: 0, count: box.count - 16)
        return openBox(&text, box, UInt64(box.count), Array(prefix.utf8) + nonce, key) == 0 ? text : nil
    }
}
