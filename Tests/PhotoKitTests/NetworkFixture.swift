import Foundation
import PhotoKit
import TestSupport
import Testing

/// A catalog to which programs connect over TCP with keys, so that its owner decides about their access.
final class NetworkFixture: Sendable {
    let services: SafelightFixture
    private let keys: TemporaryFolder

    init(_ name: String, generated: Int = 0) throws {
        let keys = try TemporaryFolder("pk-keys")
        self.keys = keys
        services = try SafelightFixture(
            name,
            environment: ["SAFELIGHT_LISTEN": "127.0.0.1:0", "SAFELIGHT_KEYS": keys.file("keys")]
        )
        if generated > 0 { try services.generateLibrary(assets: generated) }
        try #require(try services.safelight(["keys", "server"]).status == 0)
        try services.start([.catalog])
    }

    /// Creates a key, and returns the configuration of a program that uses it.
    func configuration(
        key name: String,
        access: String,
        client: String,
        purpose: String
    ) throws -> PHPhotoLibrary.Configuration {
        try #require(try services.safelight(["keys", "create", name, "--access", access]).status == 0)
        let program = try #require(services.program(.catalog))
        _ = program.wait { $0.errorText.contains("tcp://127.0.0.1:") }
        let address = try #require(program.errorText.firstMatch(of: /tcp:\/\/(127\.0\.0\.1:[0-9]+)/)).1
        let folder = keys.file("keys/made/\(name)")
        var configuration = PHPhotoLibrary.Configuration()
        configuration.host = String(address)
        configuration.client = client
        configuration.purpose = purpose
        configuration.keys = PHPhotoLibrary.Configuration.Keys(
            server: try Self.readKey("public-key", in: folder + "/server.key"),
            publicKey: try Self.readKey("public-key", in: folder + "/\(name).key_secret"),
            secretKey: try Self.readKey("secret-key", in: folder + "/\(name).key_secret")
        )
        return configuration
    }

    /// Reads one of the keys of a certificate.
    private static func readKey(_ name: String, in file: String) throws -> String {
        let text = try String(contentsOfFile: file, encoding: .utf8)
        let lines = text.split(separator: "\n").map { $0.trimmingCharacters(in: .whitespaces) }
        let line = try #require(lines.first { $0.hasPrefix("\(name) = \"") })
        return String(line.dropFirst(name.count + 4).dropLast())
    }
}
