import ArgumentParser
import Foundation
import Logging
import Messaging
import TestSupport
import Testing

@testable import Hosting

@Suite(.timeLimit(.minutes(1)))
struct KeyTests {
    private static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    private func makeKeyFolder() throws -> (folder: TestSupport.TemporaryFolder, keys: KeyFolder) {
        let folder = try TestSupport.TemporaryFolder("keys")
        return (folder, KeyFolder(path: folder.file("keys")))
    }

    private func mode(_ path: String) throws -> Int? {
        try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
    }

    @Test func `the services' key pair is generated once and readable by its owner only`() throws {
        let (folder, keys) = try makeKeyFolder()
        #expect(throws: KeyError.self) { try keys.server() }
        let (pair, isNew) = try keys.makeServer()
        #expect(isNew)
        #expect(try keys.makeServer() == (pair, false))
        #expect(try keys.server() == pair)
        #expect(try mode(keys.path) == 0o700)
        #expect(try mode(keys.path + "/server.key_secret") == 0o600)
        #expect(try keys.publicCertificate(of: "server").publicKey == pair.publicKey)
        let secret = try String(contentsOfFile: keys.serverFile, encoding: .utf8)
        #expect(!secret.contains("secret-key"))
        withExtendedLifetime(folder) {}
    }

    @Test func `a client is created, listed, revoked and admitted again`() throws {
        let (folder, keys) = try makeKeyFolder()
        _ = try keys.makeServer()
        let output = keys.defaultOutput(of: "ann")
        let certificate = try keys.create("ann", lists: [.requests, .edits], output: output)
        #expect(
            try keys.keys() == [ListedKey(name: "ann", publicKey: certificate.publicKey, lists: [.requests, .edits])]
        )
        #expect(try mode(output) == 0o700)
        #expect(try mode(output + "/ann.key_secret") == 0o600)
        #expect(try KeyFile.read(output + "/ann.key_secret", isSecret: true).pair?.publicKey == certificate.publicKey)
        #expect(throws: KeyError.self) { try keys.create("ann", lists: [.requests], output: output) }
        #expect(try keys.revoke("ann", from: [.edits]) == [.edits])
        #expect(try keys.revoke("ann") == [.requests])
        #expect(throws: KeyError.unknown("ann")) { try keys.revoke("ann") }
        #expect(try keys.keys() == [])
        try keys.admit(Certificate(readingPublic: output + "/ann.key"), as: "ann", to: [.feed])
        #expect(try keys.keys().first?.lists == [.feed])
        let other = Certificate(publicKey: try CurveKeyPair.generate().publicKey)
        #expect(throws: KeyError.self) { try keys.admit(other, as: "ann", to: [.feed]) }
        #expect(throws: KeyError.self) { try keys.admit(certificate, as: "anna", to: [.feed]) }
        withExtendedLifetime(folder) {}
    }

    @Test func `a client whose keys exist gets no other keys`() throws {
        let (folder, keys) = try makeKeyFolder()
        _ = try keys.makeServer()
        let output = keys.defaultOutput(of: "ann")
        let certificate = try keys.create("ann", lists: [.requests], output: output)
        try keys.revoke("ann")
        let error = #expect(throws: KeyError.self) { try keys.create("ann", lists: [.requests], output: output) }
        #expect(error?.description.contains("keys admit") == true)
        #expect(try keys.keys() == [])
        #expect(try KeyFile.read(output + "/ann.key_secret", isSecret: true).publicKey == certificate.publicKey)
        withExtendedLifetime(folder) {}
    }

    @Test func `the creation of a client that was interrupted is completed with the same key`() throws {
        let (folder, keys) = try makeKeyFolder()
        _ = try keys.makeServer()
        let output = keys.defaultOutput(of: "ann")
        let secret = output + "/ann.key_secret"
        let lists: [KeyList] = [.requests, .feed]
        let certificate = try keys.create("ann", lists: lists, output: output)
        // The state between the first and the second list.
        try keys.revoke("ann", from: [.feed])
        #expect(rename(secret, secret + ".new") == 0)
        #expect(!keys.hasSecret(of: "ann", in: output))
        #expect(try keys.create("ann", lists: lists, output: output).publicKey == certificate.publicKey)
        #expect(try keys.keys() == [ListedKey(name: "ann", publicKey: certificate.publicKey, lists: lists)])
        #expect(try KeyFile.read(secret, isSecret: true).pair?.publicKey == certificate.publicKey)
        #expect(access(secret + ".new", F_OK) != 0)
        // The creation is completed with other lists than those with which it began.
        #expect(rename(secret, secret + ".new") == 0)
        #expect(try keys.create("ann", lists: [.requests], output: output).publicKey == certificate.publicKey)
        #expect(try keys.keys().map(\.lists) == [[.requests]])
        withExtendedLifetime(folder) {}
    }

    @Test func `key lists are read again as soon as they change`() throws {
        let (folder, keys) = try makeKeyFolder()
        _ = try keys.makeServer()
        let registry = KeyRegistry(folder: keys, logger: Self.logger)
        let ann = try keys.create("ann", lists: [.requests], output: keys.defaultOutput(of: "ann"))
        for _ in 0..<20 {
            #expect(registry.name(of: ann.publicKey.text, on: .requests) == "ann")
            #expect(registry.name(of: ann.publicKey.text, on: .feed) == nil)
            try keys.revoke("ann")
            #expect(registry.name(of: ann.publicKey.text, on: .requests) == nil)
            try keys.admit(ann, as: "ann", to: [.requests])
        }
        #expect(!registry.isSame("ann", on: .services, and: .requests))
        try keys.admit(ann, as: "ann", to: [.services])
        #expect(registry.isSame("ann", on: .services, and: .requests))
        #expect(!registry.isSame("bob", on: .services, and: .requests))
        // All keys of a list that other users may write are refused.
        try FileManager.default.setAttributes([.posixPermissions: 0o777], ofItemAtPath: keys.folder(of: .requests))
        #expect(registry.name(of: ann.publicKey.text, on: .requests) == nil)
        withExtendedLifetime(folder) {}
    }

    @Test func `an invalid file on a list is ignored and the others are used`() throws {
        let (folder, keys) = try makeKeyFolder()
        _ = try keys.makeServer()
        let ann = try keys.create("ann", lists: [.requests], output: keys.defaultOutput(of: "ann"))
        let list = keys.folder(of: .requests)
        for (name, text) in [
            ("empty.key", ""), ("noise.key", "\u{0}\u{1}"), ("..key", ""), ("-x.key", ""),
            ("long.key", String(repeating: "x", count: 20_000)),
            ("notes.txt", "hello"),
        ] { try Data(text.utf8).write(to: URL(fileURLWithPath: list + "/" + name)) }
        try FileManager.default.createDirectory(atPath: list + "/folder.key", withIntermediateDirectories: true)
        mkfifo(list + "/pipe.key", 0o600)
        let read = try keys.read(.requests)
        #expect(read.keys.map(\.name) == ["ann"])
        #expect(read.problems.count == 6)
        #expect(KeyRegistry(folder: keys, logger: Self.logger).name(of: ann.publicKey.text, on: .requests) == "ann")
        withExtendedLifetime(folder) {}
    }

    @Test func `key files and folders accessible to others are refused, with their path`() throws {
        let (folder, keys) = try makeKeyFolder()
        _ = try keys.makeServer()
        let secret = keys.path + "/server.key_secret"
        try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: secret)
        #expect(throws: KeyError.self) { try keys.server() }
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: secret)
        _ = try keys.server()
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: keys.path)
        let error = #expect(throws: KeyError.self) { try keys.server() }
        #expect(error?.description.contains("chmod 700") == true)
        withExtendedLifetime(folder) {}
    }

    @Test(arguments: ["", ".", "..", "a/b", "-a", ".a", "a b", "ä", "server", String(repeating: "a", count: 65), "a\n"])
    func `an invalid key name is refused`(name: String) throws {
        #expect(throws: KeyError.self) { try KeyFolder.check(name) }
    }

    @Test func `certificates of pyzmq and czmq are parsed, and errors of invalid ones name the problem`() throws {
        let pair = try CurveKeyPair.generate()
        let (publicText, secret) = (pair.publicKey.text, pair.secretKey.text)
        let python = """
            #   ****  Generated on 2026-01-01 10:00:00 by pyzmq  ****
            #   ZeroMQ CURVE **Secret** Certificate
            #   DO NOT PROVIDE THIS FILE TO OTHER USERS nor change its permissions.

            metadata
                email = "a=b#c"
            curve
                public-key = "\(publicText)"
                secret-key = "\(secret)"
            """
        let certificate = try Certificate(text: python, path: "x")
        #expect(certificate.pair == pair)
        #expect(certificate.metadata.map(\.value) == ["a=b#c"])
        #expect(try Certificate(text: certificate.text, path: "x") == certificate)
        #expect(try Certificate(text: certificate.publicPart.text, path: "x") == certificate.publicPart)
        let foreignText = "curve\r\n\tpublic-key = '\(publicText)'\r\n"
        #expect(try Certificate(text: foreignText, path: "x").publicKey == pair.publicKey)
        let other = try CurveKeyPair.generate().secretKey.text
        for text in [
            "", "curve\n", "metadata\n  public-key = \"\(publicText)\"", "curve\n  public-key = \"\(publicText)",
            "curve\n  public-key = \"short\"",
            "curve\n  public-key = \"\(publicText)\"\n  secret-key = \"\(other)\"",
            "curve\n  public-key = \"\(publicText)\"\n  public-key = \"\(publicText)\"",
        ] {
            #expect(throws: KeyError.self) { try Certificate(text: text, path: "x") }
        }
    }

    @Test func `listen addresses are parsed with and without a port`() throws {
        func address(_ text: String) throws -> String {
            try TCPHost(text, source: "--listen").address(of: .edits).description
        }
        #expect(try address("0.0.0.0") == "tcp://0.0.0.0:5576")
        #expect(try address("photos.example.org:7000") == "tcp://photos.example.org:7005")
        #expect(try address("127.0.0.1:0") == "tcp://127.0.0.1:0")
        #expect(try address("::1") == "tcp://[::1]:5576")
        #expect(try address("[::1]:7000") == "tcp://[::1]:7005")
        for text in ["", ":5571", "a:x", "a:65531", "a b", "tcp://a"] {
            #expect(throws: HostingError.self) { try TCPHost(text, source: "--listen") }
        }
    }

    @Test func `a client's keys are set by flag or variable, both or neither`() throws {
        let (folder, keys) = try makeKeyFolder()
        let server = try keys.makeServer().pair
        let output = keys.defaultOutput(of: "ann")
        let ann = try keys.create("ann", lists: [.requests], output: output)
        var variables = ["SAFELIGHT_HOST": "photos:7000", "SAFELIGHT_SERVER_KEY": output + "/server.key"]
        let options = try EndpointOptions.parse([])
        #expect(throws: HostingError.self) { try options.resolve { variables[$0] } }
        variables["SAFELIGHT_CLIENT_KEY"] = output + "/ann.key"
        #expect(throws: HostingError.self) { try options.resolve { variables[$0] } }
        variables["SAFELIGHT_CLIENT_KEY"] = output + "/ann.key_secret"
        variables["SAFELIGHT_FEED"] = "ipc:///tmp/feed"
        let endpoints = try options.resolve { variables[$0] }
        #expect(endpoints[.broker].description == "tcp://photos:7003")
        #expect(endpoints.security(of: .feed) == .none)
        guard case .curveClient(server.publicKey, let pair) = endpoints.security(of: .broker) else {
            Issue.record("no keys")
            return
        }
        #expect(pair.publicKey == ann.publicKey)
        withExtendedLifetime(folder) {}
    }
}
