import Foundation
import Synchronization

/// OpenStack Swift with its S3 interface as four processes, which store their objects in a folder and preserve them
/// across kills (Rows/swiftserver.py).
///
/// Only for long tests: `make soak` installs its package, and `make test` does not.
public final class SwiftServer: Sendable {
    public static let secret = "secret-of-swift"
    private static let servers = ["account-server", "container-server", "object-server", "proxy-server"]
    /// Debian's package with the code of all servers. Installing it does not start them.
    public static let package = "python3-swift"

    public let folder: TemporaryFolder
    private let programs = Mutex<[String: RunningProgram]>([:])

    /// Starts the servers with an empty bucket. If the package is missing, the test is cancelled, or fails with `CI`.
    public init() throws {
        folder = try TemporaryFolder("swift")
        let prepared = try RunningProgram.run(
            try Self.python(),
            Self.arguments(folder, "prepare"),
            environment: Self.ownEnvironment
        )
        guard prepared.status == 0 else { throw FixtureError(description: "no Swift: \(prepared.errors)") }
        try start()
    }

    /// Without PYTHONPATH, because the packages of `.build/python` would hide those that Debian's Swift needs.
    private static let ownEnvironment = ["PYTHONPATH": ""]

    private static func python() throws -> String {
        let path = "/usr/bin/python3"
        let isInstalled = ["proxy", "account", "container", "obj"].allSatisfy { part in
            let arguments = ["-c", "import swift.\(part).server"]
            return (try? RunningProgram.run(path, arguments, environment: ownEnvironment).status) == 0
        }
        let name = "OpenStack Swift (apt-get install \(package), as make soak does)"
        return try Needed.found(isInstalled ? path : nil, name)
    }

    private static func arguments(_ folder: TemporaryFolder, _ part: String) -> [String] {
        ["-B", TestPaths.package + "/Tests/SystemTests/Rows/swiftserver.py", folder.path, part]
    }

    private func start() throws {
        let python = try Self.python()
        for server in Self.servers {
            let arguments = Self.arguments(folder, server)
            let program = try RunningProgram(python, arguments, environment: Self.ownEnvironment)
            programs.withLock { $0[server] = program }
        }
        // The script repeats the request until all four answer it, for at most a minute.
        let script = TestPaths.package + "/Tests/SystemTests/Rows/bucket.py"
        let run = try RunningProgram.run(try Needed.python("boto3"), ["-B", script], environment: environment)
        guard run.status == 0 else { throw FixtureError(description: "no Swift: \(run.errors)\n\(logs)") }
    }

    /// The variables that connect a catalog to its bucket by the host `photos.localhost`.
    public var virtualHostEnvironment: [String: String] {
        get throws {
            try environment.merging([
                "SAFELIGHT_OBJECT_STORE_ENDPOINT": "http://localhost:" + (try port),
                "SAFELIGHT_OBJECT_STORE_STYLE": "virtualHost",
            ]) { $1 }
        }
    }

    private var port: String {
        get throws { try String(contentsOfFile: folder.file("port"), encoding: .utf8) }
    }

    /// The end of each server's log, for the report of a failing test.
    public var logs: String {
        programs.withLock { programs in
            programs.map { "--- \($0)\n\($1.errorText.suffix(3000))" }.joined(separator: "\n")
        }
    }

    /// The variables that connect a catalog to its bucket.
    public var environment: [String: String] {
        get throws {
            [
                "SAFELIGHT_OBJECT_STORE": "s3://photos/library",
                "SAFELIGHT_OBJECT_STORE_ENDPOINT": "http://127.0.0.1:" + (try port),
                "AWS_ACCESS_KEY_ID": "test:safelight", "AWS_SECRET_ACCESS_KEY": Self.secret, "S3": folder.path,
                "no_proxy": "127.0.0.1,localhost,.localhost",
            ]
        }
    }

    /// True while an object arrives: the server writes it into an unnamed file, which gets its name at the end.
    public var isReceiving: Bool {
        guard let server = programs.withLock({ $0["object-server"] }) else { return false }
        let folder = "/proc/\(server.processIdentifier)/fd"
        let files = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        return files.contains { file in
            let path = (try? FileManager.default.destinationOfSymbolicLink(atPath: "\(folder)/\(file)")) ?? ""
            return path.hasPrefix(self.folder.file("devices")) && path.hasSuffix("(deleted)")
        }
    }

    /// Kills the four processes with SIGKILL.
    public func killHard() {
        programs.withLock { programs in
            for program in programs.values { program.signal(SIGKILL) }
            for program in programs.values { program.wait() }
            programs = [:]
        }
    }

    /// Kills the four processes with SIGKILL and starts them again at the same address, with the same objects.
    public func restart() throws {
        killHard()
        try start()
    }

    deinit { killHard() }
}
