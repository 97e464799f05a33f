import Contracts
import Foundation
import JSONValue
import PhotoClient
import TestSupport
import Testing

/// The broker's metrics of its subscribers, and a subscriber without libzmq.
enum FeedPeer {
    /// Returns a figure of the broker's publisher; -1 if there is none.
    static func figure(_ name: String, _ library: PhotoLibrary) async throws -> Int {
        Int(try await library.changeBroker.metrics()["publisher"]?[name]?.intValue ?? -1)
    }

    /// Connects a subscriber and completes the ZMTP handshake.
    static func subscriber(_ services: SafelightFixture) throws -> RawZMTP {
        let peer = try RawZMTP(path: services.folder.file("run/feed.sock"))
        peer.greet(as: "SUB")
        // The greeting, and READY.
        let head = peer.read(64).flatMap { _ in peer.read(2) }
        #expect(peer.read(Int(try #require(head)[1])) != nil)
        return peer
    }
}
