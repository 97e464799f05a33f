import Foundation
import PostgreSQL
import Synchronization

/// A real PostgreSQL server of Debian's package in a temporary folder, reachable by a Unix socket only.
///
/// If the tests run as root, the server runs as the package's user. It ends with the process that has started it.
public final class PostgreSQLServer: Sendable {
    /// The folder of the server's files and of its socket.
    public let folder: TemporaryFolder
    private let program: Mutex<RunningProgram>

    /// The server's settings besides those of all tests.
    private let settings: [String]

    /// Creates a cluster and starts its server.
    ///
    /// - Parameter settings: further settings, for example `fsync=on`
    public init(settings: [String] = []) throws {
        self.settings = settings
        // Without the package the test is skipped.
        _ = try Self.tool("initdb")
        folder = try TemporaryFolder("pg")
        if let owner = Self.owner { chown(folder.path, owner.uid, owner.gid) }
        let copied = try RunningProgram.run("/bin/cp", ["-a", Self.cluster.get().file("data"), folder.file("data")])
        guard copied.status == 0 else { throw FixtureError(description: "cp failed: \(copied.errors)") }
        program = Mutex(try Self.start(folder, settings))
    }

    /// A new cluster. Each server gets a copy, because creating a cluster takes ten times as long.
    private static let cluster = Result {
        let folder = try TemporaryFolder("pg-new")
        folder.removeAtExit()
        if let owner { chown(folder.path, owner.uid, owner.gid) }
        let created = try RunningProgram.run(
            "/usr/bin/env",
            prefix + [
                try tool("initdb"), "--no-sync", "--auth=trust", "--username=safelight", "--encoding=UTF8",
                "--locale=C.UTF-8", "--pgdata=" + folder.file("data"),
            ]
        )
        guard created.status == 0 else {
            throw FixtureError(description: "initdb failed: \(created.errors)\(created.output)")
        }
        return folder
    }

    /// Creates a replica that follows a server by streaming replication, and starts it.
    public init(replicaOf primary: PostgreSQLServer) throws {
        settings = []
        folder = try TemporaryFolder("pg")
        if let owner = Self.owner { chown(folder.path, owner.uid, owner.gid) }
        try Self.copy(primary, to: folder)
        program = Mutex(try Self.start(folder, settings))
    }

    /// Restarts at the same address as a replica of a server, as a former primary server does when it returns.
    public func follow(_ primary: PostgreSQLServer) throws {
        try program.withLock { program in
            try FileManager.default.removeItem(atPath: folder.file("data"))
            try Self.copy(primary, to: folder)
            program = try Self.start(folder, settings)
        }
    }

    private static func copy(_ primary: PostgreSQLServer, to folder: TemporaryFolder) throws {
        let copied = try RunningProgram.run(
            "/usr/bin/env",
            prefix + [
                try tool("pg_basebackup"), "--write-recovery-conf", "--checkpoint=fast", "--no-sync",
                "--dbname=" + primary.address, "--pgdata=" + folder.file("data"),
            ]
        )
        guard copied.status == 0 else { throw FixtureError(description: "pg_basebackup failed: \(copied.errors)") }
    }

    /// Returns the server that all tests of this process share; each library has a schema of its own.
    public static func shared() throws -> PostgreSQLServer {
        try running.withLock { server in
            if let server { return server }
            let new = try PostgreSQLServer()
            server = new
            return new
        }
    }

    private static let running = Mutex<PostgreSQLServer?>(nil)

    private static func tool(_ name: String) throws -> String {
        let versions = (13...20).reversed().map { "/usr/lib/postgresql/\($0)/bin/\(name)" }
        let path = versions.first { FileManager.default.isExecutableFile(atPath: $0) } ?? TestPaths.program(name)
        return try Needed.found(path, "PostgreSQL's \(name)")
    }

    /// The user of the server; nil for that of the tests.
    private static var owner: (uid: uid_t, gid: gid_t)? {
        guard getuid() == 0 else { return nil }
        guard let entry = getpwnam("postgres") ?? getpwnam("nobody") else { return nil }
        return (entry.pointee.pw_uid, entry.pointee.pw_gid)
    }

    private static var prefix: [String] {
        owner.map { ["setpriv", "--reuid=\($0.uid)", "--regid=\($0.gid)", "--clear-groups"] } ?? []
    }

    /// Ends the server when the process with the first argument has ended; the other arguments are the server's.
    private static let supervisor = """
        parent=$1; shift
        "$@" &
        server=$!
        trap 'kill -QUIT $server; wait $server; exit 0' TERM
        while kill -0 "$parent" 2>/dev/null && kill -0 $server 2>/dev/null; do sleep 0.2; done
        kill -QUIT $server 2>/dev/null; wait $server
        kill -0 "$parent" 2>/dev/null || rm -rf "$(dirname "$PGDATA")"
        """

    private static func start(_ folder: TemporaryFolder, _ further: [String]) throws -> RunningProgram {
        let settings =
            [
                "listen_addresses=", "unix_socket_directories=" + folder.path, "fsync=off", "max_connections=400",
                "shared_buffers=64MB", "log_min_messages=warning",
            ] + further
        let program = try RunningProgram(
            "/bin/sh",
            ["-c", supervisor, "sh", "\(getpid())", "/usr/bin/env"] + prefix
                + [try tool("postgres"), "-D", folder.file("data")] + settings.flatMap { ["-c", $0] },
            environment: ["PGDATA": folder.file("data")]
        )
        guard program.wait(until: { _ in canConnect(folder) }) else {
            throw FixtureError(description: "no PostgreSQL server: \(program.errorText)")
        }
        return program
    }

    private static func canConnect(_ folder: TemporaryFolder) -> Bool {
        (try? PostgreSQLConnection(address(folder, "postgres"))) != nil
    }

    private static func address(_ folder: TemporaryFolder, _ database: String) -> String {
        "postgresql://safelight@/\(database)?host=\(folder.path)"
    }

    /// The address of the database that all servers have.
    public var address: String { Self.address(folder, "postgres") }

    /// Returns an address with two servers, this one and another.
    public func address(with other: PostgreSQLServer) -> String { address + "," + other.folder.path }

    /// Executes statements at an address, as an administrator of the database might.
    public static func execute(_ script: String, at address: String) throws {
        try PostgreSQLConnection(address).execute(script: script)
    }

    /// Returns the text in the first column of a query's first row.
    public static func text(_ query: String, at address: String) throws -> String {
        try PostgreSQLConnection(address).execute(query).text(0, 0)
    }

    /// Returns the address of a schema, which is created if it does not exist.
    public func address(schema name: String) throws -> String {
        let connection = try PostgreSQLConnection(address)
        try connection.execute(script: "CREATE SCHEMA IF NOT EXISTS \(name)")
        return address + "&options=-csearch_path%3D\(name)"
    }

    /// Returns the address of the schema that belongs to a library's folder.
    public func address(library folder: String) throws -> String {
        try address(schema: "library_" + Data(folder.utf8).map { String($0, radix: 36) }.joined().suffix(48))
    }

    /// Kills the server with SIGKILL and starts it again with the same files.
    public func restart() throws {
        try program.withLock { program in
            try Self.kill(folder, program)
            program = try Self.start(folder, settings)
        }
    }

    /// Kills the server with SIGKILL.
    public func kill() throws { try program.withLock { try Self.kill(folder, $0) } }

    private static func kill(_ folder: TemporaryFolder, _ program: RunningProgram) throws {
        try processID(folder).map { _ = Foundation.kill($0, SIGKILL) }
        program.wait(seconds: 20)
    }

    private static func processID(_ folder: TemporaryFolder) throws -> pid_t? {
        let file = try String(contentsOfFile: folder.file("data/postmaster.pid"), encoding: .utf8)
        return file.split(separator: "\n").first.flatMap { pid_t($0) }
    }

    /// Stops all processes of the server with SIGSTOP, or continues them. While they are stopped, connections stay open
    /// and requests are not answered.
    public func suspend(_ isSuspended: Bool = true) throws {
        guard let server = try Self.processID(folder) else { return }
        let children = try String(contentsOfFile: "/proc/\(server)/task/\(server)/children", encoding: .utf8)
        for process in [server] + children.split(separator: " ").compactMap({ pid_t($0) }) {
            Foundation.kill(process, isSuspended ? SIGSTOP : SIGCONT)
        }
    }

    /// Stops the server.
    public func stop() {
        program.withLock { program in
            program.signal(SIGTERM)
            program.wait(seconds: 20)
        }
    }

    deinit { stop() }
}
