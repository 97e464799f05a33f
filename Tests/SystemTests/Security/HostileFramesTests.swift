import CZeroMQ
import Contracts
import Foundation
import PhotoClient
import TestSupport
import Testing

/// Random and mutated messages on every endpoint of the real services.
///
/// Two seconds in the short form; `SAFELIGHT_FUZZ_SECONDS=120` is the long one.
@Suite(.serialized, .timeLimit(.minutes(10)))
struct HostileFramesTests {
    private static let seconds = ProcessInfo.processInfo.environment["SAFELIGHT_FUZZ_SECONDS"].flatMap(Double.init) ?? 2

    @Test func `services answer throughout, and their memory returns to its earlier size`() async throws {
        let services = try SafelightFixture("fuzz")
        try services.start()
        let library = try services.library()
        for client in [library.catalog, library.thumbnailer, library.editor, library.changeBroker] {
            _ = try await client.ask(Health())
        }
        var random = SeededRandom(named: "hostile frames")
        let context = zmq_ctx_new()
        defer { zmq_ctx_term(context) }
        let names = ["catalog", "thumbnailer", "editor", "change-broker"]
        // One short run first, so that buffers that grow once have grown before memory is measured.
        try await flood(services, context, names, seconds: min(1, Self.seconds), random: &random, library: library)
        let before = names.map { resident(services, $0) }
        try await flood(services, context, names, seconds: Self.seconds, random: &random, library: library)
        let after = names.map { resident(services, $0) }
        for (index, name) in names.enumerated() {
            TestPaths.report("\(name): \(before[index]) KiB before, \(after[index]) KiB after")
            #expect(after[index] < before[index] + 48 * 1024, "\(name) grew")
        }
        await library.close()
        #expect(services.stop() == [])
    }

    private func resident(_ services: SafelightFixture, _ name: String) -> Int {
        // A service that has ended counts as one that has grown.
        guard let service = SafelightFixture.Service(rawValue: name), services.program(service)?.isRunning == true
        else { return Int.max / 2 }
        return services.residentMemory(service)
    }

    private static let seeds: [String] = [
        #"{"jsonrpc":"2.0","id":1,"method":"fetch.assets","params":{"fetch":{"sort":[{"key":"creationDate","ascending":false}],"limit":5}}}"#,
        #"{"jsonrpc":"2.0","id":"x","method":"fetch.assets","params":{"fetch":{"predicate":"isFavorite == TRUE AND (mediaSubtypes & 2) != 0"}}}"#,
        #"{"jsonrpc":"2.0","id":2,"method":"changes.perform","params":{"client":"f","transaction":"t","requests":[{"type":"collection.create","title":"x"}]}}"#,
        #"{"jsonrpc":"2.0","id":3,"method":"changes.since","params":{"limit":10}}"#,
        #"{"jsonrpc":"2.0","id":3,"method":"feed.since","params":{"limit":10,"topics":["asset.a"]}}"#,
        #"{"jsonrpc":"2.0","id":4,"method":"image.request","params":{"asset":"a00000000000000000000000000","targetSize":{"width":512,"height":512}}}"#,
        #"{"jsonrpc":"2.0","id":5,"method":"edits.apply","params":{"asset":"a00000000000000000000000000","adjustments":{"version":1,"operations":[{"operation":"exposure","value":1}]}}}"#,
        #"{"jsonrpc":"2.0","id":6,"method":"rpc.cancel","params":{"id":5}}"#,
        #"{"jsonrpc":"2.0","id":7,"method":"upload.begin","params":{"size":100}}"#,
        #"{"jsonrpc":"2.0","id":8,"method":"resource.read","params":{"asset":"a00000000000000000000000000","offset":-1,"deadlineMs":5}}"#,
    ]

    private func flood(
        _ services: SafelightFixture,
        _ context: UnsafeMutableRawPointer?,
        _ names: [String],
        seconds: Double,
        random: inout SeededRandom,
        library: PhotoLibrary
    ) async throws {
        let end = Date().addingTimeInterval(seconds)
        var sent = 0
        while Date() < end {
            for name in names {
                let socket = zmq_socket(context, Bool.random(using: &random) ? ZMQ_DEALER : ZMQ_REQ)
                var zero: Int32 = 0
                zmq_setsockopt(socket, ZMQ_LINGER, &zero, MemoryLayout<Int32>.size)
                var timeout: Int32 = 200
                zmq_setsockopt(socket, ZMQ_SNDTIMEO, &timeout, MemoryLayout<Int32>.size)
                zmq_connect(socket, "ipc://" + services.folder.file("run") + "/\(name).sock")
                for _ in 0..<(Int.random(in: 1...40, using: &random)) {
                    let count = [1, 1, 1, 2, 3, 70].randomElement(using: &random) ?? 1
                    for part in 0..<count {
                        let frame = Self.frame(&random)
                        let flags = part + 1 < count ? ZMQ_SNDMORE : 0
                        if frame.withUnsafeBytes({ zmq_send(socket, $0.baseAddress, $0.count, flags) }) < 0 { break }
                        sent += 1
                    }
                }
                zmq_close(socket)
            }
            for client in [library.catalog, library.thumbnailer, library.editor, library.changeBroker] {
                _ = try await client.ask(Health(), deadline: .seconds(10))
            }
        }
        TestPaths.report("\(sent) hostile frames")
    }

    private static func frame(_ random: inout SeededRandom) -> [UInt8] {
        if Int.random(in: 0..<4, using: &random) == 0 {
            return random.bytes(Int.random(in: 0...300, using: &random))
        }
        var bytes = Array((seeds.randomElement(using: &random) ?? "").utf8)
        for _ in 0..<Int.random(in: 0...6, using: &random) where !bytes.isEmpty {
            let index = Int.random(in: 0..<bytes.count, using: &random)
            switch Int.random(in: 0..<5, using: &random) {
            case 0: bytes[index] = UInt8.random(in: 0...255, using: &random)
            case 1: bytes.remove(at: index)
            case 2: bytes.insert(contentsOf: bytes[index...].prefix(20), at: index)
            case 3: bytes.replaceSubrange(index..<index, with: Array("99999999999999999999".utf8))
            default: bytes = Array(bytes.prefix(index))
            }
        }
        return bytes
    }
}
