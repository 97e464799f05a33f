import Basics
import CZeroMQ
import Foundation
import Logging
import Synchronization
import Testing

@testable import Messaging

/// Tests of the replies to ZAP requests about keys whose approval is not known yet; the requests are sent as libzmq
/// sends them.
@Suite(.timeLimit(.minutes(1)))
struct ZAPHandlerTests {
    private let domain = "test-\(UUID().uuidString)"
    private let approval: Approval

    private final class Approval: Sendable {
        let value = Mutex<Bool?>(nil)
    }

    init() throws {
        let approval = Approval()
        self.approval = approval
        try MessagingContext.shared.admit(
            to: domain,
            logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() },
            approval: { _, _ in approval.value.withLock { $0 } },
            admission: { _, _ in "ann" }
        )
    }

    private func request(_ id: Int, _ key: CurvePublicKey) -> [Bytes] {
        [[], Bytes("1.0".utf8), Bytes("\(id)".utf8), Bytes(domain.utf8), Bytes("127.0.0.1".utf8), []]
            + [Bytes("CURVE".utf8), key.bytes]
    }

    /// Returns the id and the status code of the next reply.
    private func reply(_ peer: RawPeer) async throws -> [String] {
        try await peer.receive()[2...3].map { String(decoding: $0, as: UTF8.self) }
    }

    @Test(arguments: [(true, "200"), (false, "400")])
    func `a connection waits until its approval is known, and a seventeenth of its key tries again`(
        isApproved: Bool,
        code: String
    ) async throws {
        let peer = try RawPeer(ZMQ_DEALER, EndpointAddress(ZAPHandler.address))
        let key = try CurveKeyPair.generate().publicKey
        for id in 1...17 { try await peer.send(request(id, key)) }
        #expect(try await reply(peer) == ["17", "300"])
        approval.value.withLock { $0 = isApproved }
        MessagingContext.shared.authenticator.decideSoon()
        for id in 1...16 { #expect(try await reply(peer) == ["\(id)", code]) }
        try await peer.close()
    }

    @Test func `without a decision a connection tries again before the time limit of its handshake`() async throws {
        let peer = try RawPeer(ZMQ_DEALER, EndpointAddress(ZAPHandler.address))
        let started = ContinuousClock.now
        try await peer.send(request(1, CurveKeyPair.generate().publicKey))
        #expect(try await reply(peer) == ["1", "300"])
        #expect((.seconds(2)..<MessagingLimits().handshakeInterval).contains(ContinuousClock.now - started))
        try await peer.close()
    }
}
