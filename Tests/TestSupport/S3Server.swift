import Foundation
import Synchronization

/// A real S3 server as a process: moto's, with a log of its requests (Rows/s3server.py). It keeps its objects over a kill.
public final class S3Server: Sendable {
    public static let secret = "a secret that is in no log"

    public let folder: TemporaryFolder
    private let program: Mutex<RunningProgram>

    /// Starts a server with an empty bucket.
    public init() throws {
        folder = try TemporaryFolder("s3")
        program = Mutex(try Self.start(folder, port: "0"))
    }

    private static func start(_ folder: TemporaryFolder, port: String) throws -> RunningProgram {
        let python = try Needed.python("moto, flask_cors, zmq")
        let script = TestPaths.package + "/Tests/SystemTests/Rows/s3server.py"
        let program = try RunningProgram(python, ["-B", script, folder.path, port])
        guard program.waitForOutput("ready") else {
            throw FixtureError(description: "no S3 server: \(program.errorText)")
        }
        return program
    }

    /// The port at which it listens.
    public var port: String {
        get throws { try String(contentsOfFile: folder.file("port"), encoding: .utf8) }
    }

    /// The variables that connect a catalog to its bucket.
    public var environment: [String: String] {
        get throws {
            [
                "SAFELIGHT_OBJECT_STORE": "s3://photos/library",
                "SAFELIGHT_OBJECT_STORE_ENDPOINT": "http://127.0.0.1:" + (try port),
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
            program = try Self.start(folder, port: port)
        }
    }

    /// The requests that have reached the server, one line of JSON each.
    public var requests: [String] {
        let text = (try? String(contentsOfFile: folder.file("requests"), encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    /// Has the server fail, delay or falsify its responses, as `Rows/s3server.py` describes; `{}` for no fault.
    public func setFaults(_ faults: String) throws {
        try faults.write(toFile: folder.file("faults.new"), atomically: false, encoding: .utf8)
        guard rename(folder.file("faults.new"), folder.file("faults")) == 0 else {
            throw FixtureError(description: "the faults of the S3 server cannot be set")
        }
    }

    /// The digests of the objects in the bucket.
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
