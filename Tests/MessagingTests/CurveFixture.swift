import Foundation
import Logging
import Synchronization

@testable import Messaging

/// A ZAP domain of one test, with its list of keys and the number of lines logged about it.
final class CurveFixture: Sendable {
    let server: CurveKeyPair
    let domain = "test-\(UUID().uuidString)"
    let lines = Counter()
    private let list = Mutex<[String: String]>([:])

    init(context: MessagingContext = .shared) throws {
        server = try CurveKeyPair.generate()
        try context.admit(to: domain, logger: logger, isService: { name, _ in name == "service" }) {
            [weak self] _, key in
            self?.list.withLock { $0[key] }
        }
    }

    var logger: Logger { Logger(label: "test") { [lines] _ in CountingHandler(lines: lines) } }

    var serving: SocketSecurity { .curveServer(secretKey: server.secretKey, domain: domain) }

    /// Returns the security of a new client whose key is on the list.
    func client(_ name: String) throws -> SocketSecurity {
        let keys = try CurveKeyPair.generate()
        list.withLock { $0[keys.publicKey.text] = name }
        return clientSecurity(keys)
    }

    func revoke(_ name: String) { list.withLock { $0 = $0.filter { $0.value != name } } }

    /// Empties the list, as while its folder is copied again; returns the removed keys.
    func removeList() -> [String: String] {
        list.withLock { list in
            defer { list = [:] }
            return list
        }
    }

    func restoreList(_ old: [String: String]) { list.withLock { $0 = old } }

    func clientSecurity(_ keys: CurveKeyPair) -> SocketSecurity {
        .curveClient(serverPublicKey: server.publicKey, keys: keys)
    }

    /// Returns four kinds of clients that must be refused, with their names.
    func unlistedKeys() throws -> [(name: String, security: SocketSecurity)] {
        let other = try CurveFixture()
        guard case .curveClient(_, let listed) = try client("listed"),
            case .curveClient(_, let foreign) = try other.client("foreign")
        else { return [] }
        return [
            ("a key on no list", clientSecurity(try .generate())),
            ("a key of another domain", clientSecurity(foreign)),
            ("a wrong server key", .curveClient(serverPublicKey: other.server.publicKey, keys: listed)),
            ("no key", .trustedLoopback),
        ]
    }
}

/// A log handler that counts lines.
private struct CountingHandler: LogHandler {
    let lines: Counter
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.trace

    init(lines: Counter) { self.lines = lines }

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.add() }
}
