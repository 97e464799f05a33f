import Foundation
import Synchronization

/// A real S3 server as a process, with a log of its requests.
public final class S3Server: Sendable {
    /// The programs that can serve a bucket.
    public enum Kind: Sendable {
        /// moto's server, which checks signatures and preserves its objects across kills (Rows/s3server.py).
        case moto
        /// A server for measurements, which writes objects to files, checks nothing and forgets them when it ends
        /// (Rows/s3files.py).
        case files
    }

    public static let secret = "a secret that is in no log"

    public let folder: TemporaryFolder
    private let kind: Kind
    private let variables: [String: String]
    private let program: Mutex<RunningProgram>

    /// Starts a server with an empty bucket.
    ///
    /// - Parameter variables: the environment of the server besides that of the tests
    public init(_ kind: Kind = .moto, variables: [String: String] = [:]) throws {
        self.kind = kind
        self.variables = variables
        folder = try TemporaryFolder("s3")
        program = Mutex(try Self.start(kind, folder, port: "0", variables))
    }

    private static func start(
        _ kind: Kind,
        _ folder: TemporaryFolder,
        port: String,
        _ variables: [String: String]
    ) throws -> RunningProgram {
        let (script, modules) = kind == .moto ? ("s3server.py", "moto, flask_cors") : ("s3files.py", "os")
        let python = try Needed.python(modules)
        let path = TestPaths.package + "/Tests/SystemTests/Rows/" + script
        let program = try RunningProgram(python, ["-B", path, folder.path, port], environment: variables)
        guard program.waitForOutput("ready") else {
            throw FixtureError(description: "no S3 server: \(program.errorText)")
        }
        return program
    }

    /// The host and port for clients.
    public var address: String { get throws { "127.0.0.1:" + (try port) } }

    /// The address for clients, without TLS.
    public var endpoint: String { get throws { "http://" + (try address) } }

    /// The port on which it listens.
    public var port: String {
        get throws { try String(contentsOfFile: folder.file("port"), encoding: .utf8) }
    }

    /// The variables that connect a catalog to its bucket.
    public var environment: [String: String] {
        get throws {
            [
                "SAFELIGHT_OBJECT_STORE": "s3://photos/library",
                "SAFELIGHT_OBJECT_STORE_ENDPOINT": try endpoint,
                "AWS_ACCESS_KEY_ID": "safelight-key", "AWS_SECRET_ACCESS_KEY": Self.secret, "S3": folder.path,
                "no_proxy": "127.0.0.1",
            ]
        }
    }

    /// Kills the server with SIGKILL.
    public func killHard() { program.withLock { $0.killHard() } }

    /// Kills the server with SIGKILL and starts it again at the same address, with the same objects.
    public func restart() throws {
        let port = try port
        try program.withLock { program in
            program.killHard()
            program = try Self.start(kind, folder, port: port, variables)
        }
    }

    /// The requests that have reached the server, one line of JSON each.
    public var requests: [String] {
        let text = (try? String(contentsOfFile: folder.file("requests"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    /// Makes the server fail, delay or falsify its responses, as `Rows/s3server.py` describes; `{}` for no fault.
    public func setFaults(_ faults: String) throws {
        try faults.write(toFile: folder.file("faults.new"), atomically: false, encoding: .utf8)
        guard rename(folder.file("faults.new"), folder.file("faults")) == 0 else {
            throw FixtureError(description: "the faults of the S3 server cannot be set")
        }
    }

    /// The digests of the objects in the bucket of moto's server.
    public var objects: Set<String> {
        get throws {
            Set(
                try FileManager.default.contentsOfDirectory(atPath: folder.file("objects"))
                    .map { String($0.suffix(64)) }
            )
        }
    }

    deinit { killHard() }
}
