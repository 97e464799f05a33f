import CZeroMQ
import Contracts
import Foundation
import JSONValue
import Messaging
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Clients, services and libraries of different versions. A message or file of another version is understood as far as
/// it is the same, or refused with an error that names the unknown part; it is never misinterpreted.
@Suite(.serialized, .timeLimit(.minutes(5)))
struct VersionSkewTests {
    // MARK: A newer client

    /// A request of another version, and its answer.
    private struct Row: CustomTestStringConvertible, Sendable {
        var testDescription: String
        var service: String
        var request: String
        var error: String
        /// A text in the error's message: the name of the unknown part.
        var names: String

        init(_ what: String, _ service: String, _ request: String, _ error: String, names: String) {
            (testDescription, self.service, self.request, self.error, self.names) = (
                what, service, request, error, names
            )
        }
    }

    private static let rows: [Row] =
        [
            Row("JSON-RPC 1.0", "catalog", #""jsonrpc":"1.0","method":"health""#, "invalid_request", names: "2.0"),
            Row("no version", "editor", #""method":"health""#, "invalid_request", names: "2.0"),
            Row("JSON-RPC 3", "thumbnailer", #""jsonrpc":3,"method":"health""#, "invalid_request", names: "2.0"),
            Row(
                "a member beside params",
                "change-broker",
                #""jsonrpc":"2.0","method":"health","protocol":2"#,
                "invalid_request",
                names: "protocol"
            ),
        ]
        + ["catalog", "thumbnailer", "editor", "change-broker"].map {
            Row(
                "a method",
                $0,
                #""jsonrpc":"2.0","method":"future.method""#,
                "method_not_found",
                names: "future.method"
            )
        } + [
            Row(
                "a parameter",
                "catalog",
                #""jsonrpc":"2.0","method":"fetch.assets","params":{"fetch":{"kind":"assets"},"nearest":1}"#,
                "invalid_params",
                names: "nearest"
            ),
            Row(
                "a kind of fetch",
                "change-broker",
                #""jsonrpc":"2.0","method":"fetch.observe","params":{"fetch":{"kind":"people"}}"#,
                "invalid_params",
                names: "kind"
            ),
            Row(
                "a key of a predicate",
                "catalog",
                #""jsonrpc":"2.0","method":"fetch.assets","params":{"fetch":{"predicate":"futureKey == 1"}}"#,
                "unsupported_predicate",
                names: "futureKey"
            ),
            Row(
                "a change",
                "catalog",
                change(#"{"type":"asset.dream","id":"a"}"#),
                "invalid_params",
                names: "requests.1.type"
            ),
            Row(
                "a member of a change",
                "catalog",
                change(#"{"type":"collection.create","title":"new","colour":"red"}"#),
                "invalid_params",
                names: "colour"
            ),
            Row(
                "a version of adjustments",
                "editor",
                edit(#"{"version":2,"operations":[]}"#),
                "invalid_params",
                names: "version"
            ),
            Row(
                "an operation",
                "editor",
                edit(#"{"version":1,"operations":[{"operation":"dream","value":1}]}"#),
                "invalid_params",
                names: "dream"
            ),
            Row(
                "a topic",
                "change-broker",
                #""jsonrpc":"2.0","method":"feed.since","params":{"topics":["people.a"]}"#,
                "invalid_params",
                names: "topics"
            ),
            Row(
                "a form of token",
                "change-broker",
                #""jsonrpc":"2.0","method":"feed.since","params":{"token":"v2:0001"}"#,
                "invalid_params",
                names: "token"
            ),
            Row(
                "an image format",
                "thumbnailer",
                #""jsonrpc":"2.0","method":"image.request","params":{"asset":"a00000000000000000000000000","#
                    + #""targetSize":{"width":8,"height":8},"format":"jpeg3000"}"#,
                "invalid_params",
                names: "format"
            ),
        ]

    /// Returns a transaction whose first request is valid, and must not be applied because of the other one.
    private static func change(_ request: String) -> String {
        #""jsonrpc":"2.0","method":"changes.perform","params":{"requests":["#
            + #"{"type":"collection.create","title":"known"},\#(request)]}"#
    }

    private static func edit(_ adjustments: String) -> String {
        #""jsonrpc":"2.0","method":"edits.apply","params":{"asset":"a00000000000000000000000000","#
            + #""adjustments":\#(adjustments)}"#
    }

    @Test func `a newer client's requests are refused with the unknown name, and no part is applied`() async throws {
        let services = try SafelightFixture("skew")
        try services.start()
        let library = try services.library()
        let start = try await library.currentToken().token
        for row in Self.rows {
            let socket = ScriptSocket(ZMQ_DEALER, services, row.service)
            // An unknown notification is not answered.
            socket.send(#"{"jsonrpc":"2.0","method":"future.event","params":{"a":1}}"#)
            socket.send("{\"id\":7,\(row.request)}")
            let reply = try JSON(parsing: try #require(socket.receive()?.first, "\(row.testDescription)"))
            #expect(reply["id"] == 7, "\(row.testDescription)")
            #expect(reply["error"]?["data"]?["name"]?.stringValue == row.error, "\(row.testDescription): \(reply)")
            let message = reply["error"]?["message"]?.stringValue ?? ""
            #expect(message.contains(row.names), "\(row.testDescription): \(message)")
            // The connection remains usable.
            socket.send(#"{"jsonrpc":"2.0","id":8,"method":"health"}"#)
            #expect(try JSON(parsing: try #require(socket.receive()?.first))["result"]?["isHealthy"] == true)
        }
        #expect(try await library.currentToken().token == start)
        await library.close()
        #expect(services.stop() == [])
    }

    /// The version in ZMTP's greeting: 1 is that of ZeroMQ 3, 3 that of ZeroMQ 4; the last one does not exist.
    @Test(arguments: [UInt8(1), 3, 4, 255])
    func `a peer of another version of ZMTP is served as version 3 or closed, over ipc and over TCP`(
        version: UInt8
    ) async throws {
        let network = try NetworkFixture()
        let library = try network.services.library()
        let port = try #require(network.catalog.split(separator: ":").last.flatMap { UInt16($0) })
        for isLocal in [true, false] {
            let peer =
                try isLocal ? RawZMTP(path: network.services.folder.file("run/catalog.sock")) : RawZMTP(port: port)
            var greeting: [UInt8] = [0xFF, 0, 0, 0, 0, 0, 0, 0, 1, 0x7F, version, 0] + Array("NULL".utf8)
            greeting += [UInt8](repeating: 0, count: 64 - greeting.count)
            peer.send(greeting)
            let answer = peer.read(11)
            // The service answers with its own version, and over TCP never continues without CURVE.
            #expect(answer.map { $0[10] } ?? 3 == 3)
            peer.send(
                [4, 28] + [5] + Array("READY".utf8) + [11] + Array("Socket-Type".utf8) + [0, 0, 0, 6]
                    + Array("DEALER".utf8)
            )
            let request = #"{"jsonrpc":"2.0","id":1,"method":"health"}"#
            peer.send([0, UInt8(request.utf8.count)] + Array(request.utf8))
            if isLocal, version >= 3 {
                #expect(Self.isAnswered(peer), "version \(version) over ipc")
            } else {
                #expect(peer.waitForEnd(seconds: 40), "version \(version) over \(isLocal ? "ipc" : "TCP")")
            }
            #expect(try await library.catalog.health().isHealthy)
        }
        await library.close()
        #expect(network.services.stop() == [])
    }

    /// Returns true if the answer to the request with the id 1 arrives.
    private static func isAnswered(_ peer: RawZMTP) -> Bool {
        var received: [UInt8] = []
        while received.count < 4096, let next = peer.read(1) {
            received += next
            if next == [UInt8(ascii: "}")], String(decoding: received, as: UTF8.self).contains("\"id\":1,") {
                return true
            }
        }
        return false
    }

    // MARK: Newer services

    @Test func `clients and services work with services whose replies have more members`() async throws {
        let catalog = try SafelightFixture("skew-catalog")
        let photos = try (1...3).map { number in
            let bytes = TestImages.jpeg(
                width: 96,
                height: 64,
                date: "2024:05:0\(number) 10:00:00",
                seed: UInt64(number)
            )
            return try catalog.folder.write(bytes, to: "photos/\(number).jpg")
        }
        try catalog.start([.catalog])
        let newerCatalog = try NewerServices(["SAFELIGHT_CATALOG": catalog.address("catalog").description])
        let library = ["SAFELIGHT_LIBRARY": catalog.folder.file("library")]
        let services = try SafelightFixture("skew", environment: library.merging(newerCatalog.environment) { $1 })
        // They follow the newer catalog and send it requests and changes.
        try services.start([.changeBroker, .thumbnailer, .editor])
        let newer = try NewerServices([
            "SAFELIGHT_BROKER": services.address("change-broker").description,
            "SAFELIGHT_FEED": services.address("feed").description,
            "SAFELIGHT_THUMBNAILER": services.address("thumbnailer").description,
            "SAFELIGHT_EDITOR": services.address("editor").description,
        ])
        let skewed = services.environment.merging(newer.environment) { $1 }
        var plain = services.environment
        plain["SAFELIGHT_CATALOG"] = try catalog.address("catalog").description
        func run(_ environment: [String: String], _ arguments: [String]) throws -> String {
            let done = try RunningProgram.run("safelight", arguments, environment: environment, seconds: 60)
            #expect(done.status == 0, "\(arguments): \(done.errors)")
            return done.output
        }
        _ = try run(skewed, ["import"] + photos)
        let ids = try run(skewed, ["fetch", "--ids"]).split(separator: "\n").map(String.init)
        #expect(ids.count == 3)
        let image = services.folder.file("image.jpg")
        for arguments in [
            ["album", "create", "Alps", ids[0], ids[1]], ["favorite", ids[0]], ["set", ids[1], "--rating", "4"],
            ["edit", ids[0], "--exposure", "0.5"], ["thumb", ids[0], "--size", "32", "--output", image],
            ["trash", ids[2]], ["untrash", ids[2]], ["revert", ids[0]],
        ] { _ = try run(skewed, arguments) }
        #expect(FileManager.default.fileExists(atPath: image))
        let head = try run(plain, ["status", "--token"])
        for arguments in [
            ["fetch"], ["fetch", "--where", "rating > 3"], ["fetch", "--album", "Alps"], ["show", ids[0]],
            ["album", "list"],
            ["moments"], ["log"], ["history", ids[0]], ["grants", "list"], ["status", "--token"],
            ["watch", "--since", "start", "--count", "7"],
        ] {
            #expect(try run(skewed, arguments) == run(plain, arguments), "\(arguments)")
        }
        #expect(try run(plain, ["status", "--token"]) == head)
        #expect(newer.stop() > 10)
        #expect(newerCatalog.stop() > 50)
        for fixture in [services, catalog] {
            #expect(!fixture.logs.contains("cannot be decoded"), "\(fixture.logs)")
            #expect(fixture.stop() == [])
        }
    }

    // MARK: Libraries

    @Test func `a library of a newer version is refused with newer_version and is not changed`() async throws {
        let services = try SafelightFixture("skew-library")
        try services.start([.catalog])
        let library = try services.library()
        _ = try await library.perform([.createCollection(.init(title: "Alps"))])
        await library.close()
        #expect(services.stop() == [])
        let folder = services.folder.file("library")
        let sqlite = try Needed.program("sqlite3")
        let change =
            "INSERT INTO grdb_migrations VALUES ('99 future'); CREATE TABLE future (a);"
            + "PRAGMA wal_checkpoint(TRUNCATE);"
        #expect(try RunningProgram.run(sqlite, [folder + "/library.sqlite", change]).status == 0)
        let before = try Self.content(folder)
        #expect(before["library.sqlite"] != nil && before["head"] != nil)
        for _ in 0..<2 {
            let refused = try RunningProgram.run("catalog", [], environment: services.environment, seconds: 20)
            #expect(refused.status != 0 && refused.status != nil)
            for part in ["newer_version", folder + "/library.sqlite", "newer version of Safelight", "restore a backup"]
            {
                #expect(refused.errors.contains(part), "\(refused.errors)")
            }
            #expect(try Self.content(folder) == before)
        }
    }

    /// Returns the bytes of the files of a folder, without the files that name the process that has it open.
    private static func content(_ folder: String) throws -> [String: Data] {
        var contents: [String: Data] = [:]
        for name in try FileManager.default.subpathsOfDirectory(atPath: folder) {
            guard name != "lock", !name.hasSuffix("-shm"),
                let bytes = FileManager.default.contents(atPath: "\(folder)/\(name)")
            else { continue }
            // An empty log is the same as none.
            if name.hasSuffix("-wal"), bytes.isEmpty { continue }
            contents[name] = bytes
        }
        return contents
    }
}
