import Foundation
import Glibc
import PostgreSQL
import TestSupport
import Testing

/// The connection and its statements, against a real server.
@Suite(.timeLimit(.minutes(2)))
struct PostgreSQLConnectionTests {
    private func connect(_ schema: String = #function) throws -> PostgreSQLConnection {
        let name = "c" + schema.filter { $0.isASCII && ($0.isLowercase || $0.isNumber) }.suffix(50)
        return try PostgreSQLConnection(try PostgreSQLServer.shared().address(schema: name))
    }

    @Test func `a value of every type is read as it was written`() throws {
        let connection = try connect()
        try connection.execute(
            script: """
                CREATE TABLE sample (a bigint, b double precision, c text COLLATE "C", d bytea, e integer, f boolean)
                """
        )
        let insertion = try connection.prepare("INSERT INTO sample VALUES ($1, $2, $3, $4, $5, $6)")
        let rows: [[PostgreSQLValue]] = [
            [.integer(.min), .number(-0.1), .text("Grüße \u{1F4F7}"), .bytes([0, 255, 1]), .integer(-7), .integer(1)],
            [.integer(.max), .integer(3), .text(""), .bytes([]), .integer(7), .integer(0)],
            Array(repeating: .null, count: 6),
        ]
        for row in rows {
            for value in row { try insertion.bind(value) }
            #expect(try connection.execute(insertion).changedRows == 1)
        }
        let found = try connection.execute("SELECT a, b, c, d, e, f FROM sample ORDER BY a DESC NULLS LAST")
        #expect(found.count == 3 && found.columnCount == 6)
        let values = (0..<3).map { row in (0..<6).map { found.value(row, $0) } }
        #expect(values[1] == rows[0])
        #expect(values[0] == [.integer(.max), .number(3), .text(""), .bytes([]), .integer(7), .integer(0)])
        #expect(values[2] == rows[2])
    }

    @Test func `several hosts of an address without ports are tried one after the other`() throws {
        let server = try PostgreSQLServer.shared().address
        let folder = try #require(server.components(separatedBy: "host=").last)
        let hosts = ["/nowhere", folder].map { $0.replacingOccurrences(of: "/", with: "%2F") }.joined(separator: ",")
        let connection = try PostgreSQLConnection("postgresql://safelight@\(hosts)/postgres?connect_timeout=2")
        #expect(try connection.execute("SELECT 7").int64(0, 0) == 7)
    }

    @Test func `a value of a wrong type, or one more than there are parameters, is refused before it is sent`() throws {
        let connection = try connect()
        let statement = try connection.prepare("SELECT $1::integer")
        #expect(throws: PostgreSQLError.self) { try statement.bind(.integer(1 << 40)) }
        statement.reset()
        try statement.bind(.integer(5))
        #expect(throws: PostgreSQLError.self) { try statement.bind(.integer(6)) }
        #expect(try connection.execute(statement).int64(0, 0) == 5)
    }

    @Test func `an error of a statement has its SQLSTATE, and the connection can still be used`() throws {
        let connection = try connect()
        try connection.execute(script: "CREATE TABLE sample (a bigint PRIMARY KEY)")
        _ = try connection.execute("INSERT INTO sample VALUES ($1)", [.integer(1)])
        let error = #expect(throws: PostgreSQLError.self) {
            try connection.execute("INSERT INTO sample VALUES ($1)", [.integer(1)])
        }
        #expect(error?.sqlState == "23505" && error?.kind == .constraint)
        #expect(try connection.execute("SELECT count(*) FROM sample").int64(0, 0) == 1)
    }

    @Test func `queued statements are carried out before the next one, which reports their first error`() throws {
        let connection = try connect()
        try connection.execute(script: "CREATE TABLE sample (a bigint PRIMARY KEY)")
        let insertion = try connection.prepare("INSERT INTO sample VALUES ($1)")
        let count = try connection.prepare("SELECT count(*) FROM sample")
        for number in 0..<1000 {
            try insertion.bind(.integer(Int64(number)))
            try connection.queue(insertion)
        }
        #expect(try connection.execute(count).int64(0, 0) == 1000)
        for number in [2000, 5, 2001] {
            try insertion.bind(.integer(Int64(number)))
            try connection.queue(insertion)
        }
        let error = #expect(throws: PostgreSQLError.self) { try connection.execute(count) }
        #expect(error?.sqlState == "23505")
        // The statements of a pipeline are one transaction unless they begin one themselves.
        #expect(try connection.execute(count).int64(0, 0) == 1000)
        #expect(!connection.isInTransaction)
    }

    @Test func `a failed transaction is detected`() throws {
        let connection = try connect()
        let begin = try connection.prepare("BEGIN")
        try connection.queue(begin)
        #expect(connection.isInTransaction)
        #expect(throws: PostgreSQLError.self) { try connection.execute("SELECT 1 FROM missing") }
        #expect(connection.isInTransaction && connection.hasFailedTransaction)
        #expect(try connection.execute("COMMIT").command == "ROLLBACK")
        #expect(!connection.isInTransaction)
    }

    @Test func `rows are copied in bulk, and none are stored if their source throws an error`() throws {
        struct SourceError: Error {}
        let connection = try connect()
        try connection.execute(script: "CREATE TABLE sample (a bigint, b text, c bytea, d double precision)")
        var next = 0
        let copied = try connection.copyIn("COPY sample FROM STDIN (FORMAT binary)") {
            next += 1
            return next > 5000 ? nil : [.integer(Int64(next)), .text("row \(next)"), .bytes([7]), .null]
        }
        #expect(copied == 5000)
        let sum = try connection.execute("SELECT count(*), max(b), sum(a)::bigint, count(d) FROM sample")
        #expect(sum.int64(0, 0) == 5000 && sum.int64(0, 2) == 5000 * 5001 / 2 && sum.int64(0, 3) == 0)
        #expect(throws: SourceError.self) {
            try connection.copyIn("COPY sample FROM STDIN (FORMAT binary)") { throw SourceError() }
        }
        #expect(try connection.execute("SELECT count(*) FROM sample").int64(0, 0) == 5000)
    }

    @Test func `a notification wakes a waiting connection`() throws {
        let (listener, notifier) = (try connect(), try connect())
        try listener.execute(script: "LISTEN records")
        #expect(try listener.notifications(waiting: 0).isEmpty)
        _ = try notifier.execute("SELECT pg_notify('records', '17')")
        #expect(try listener.notifications(waiting: 10_000).map { [$0.channel, $0.payload] } == [["records", "17"]])
    }

    @Test func `a statement fails as disconnected after the end of the server`() throws {
        let server = try PostgreSQLServer()
        let connection = try PostgreSQLConnection(server.address)
        try server.restart()
        let error = #expect(throws: PostgreSQLError.self) { try connection.execute("SELECT 1") }
        #expect(error?.kind == .disconnected && !connection.isConnected)
        #expect(try PostgreSQLConnection(server.address).execute("SELECT 1").int64(0, 0) == 1)
        server.stop()
        #expect(throws: PostgreSQLError.self) { try PostgreSQLConnection(server.address) }
    }

    @Test func `the number of prepared statements is limited`() throws {
        var limits = PostgreSQLConnection.Limits()
        limits.preparedStatements = 10
        let connection = try PostgreSQLConnection(try PostgreSQLServer.shared().address, limits: limits)
        for number in 0..<25 {
            #expect(try connection.execute(try connection.prepare("SELECT \(number)")).int64(0, 0) == number)
        }
        #expect(try connection.execute("SELECT count(*) FROM pg_prepared_statements").int64(0, 0) <= 10)
    }

    /// Returns a folder with a listening socket that never answers, and the socket.
    private func makeSilentHost() throws -> (folder: TemporaryFolder, socket: Int32) {
        let folder = try TemporaryFolder("silent")
        let silent = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: folder.file(".s.PGSQL.5432").utf8) }
        let isBound = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(silent, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
            }
        }
        try #require(isBound && listen(silent, 8) == 0)
        return (folder, silent)
    }

    @Test func `a host that does not answer delays only the first connection, by a quarter of a second`() throws {
        let server = try PostgreSQLServer.shared()
        let silent = try makeSilentHost()
        defer { close(silent.socket) }
        let address =
            "postgresql://safelight@/postgres?host=\(silent.folder.path),\(server.folder.path)&connect_timeout=5"
        let first = try ContinuousClock().measure { _ = try PostgreSQLConnection(address) }
        #expect(first >= .milliseconds(200) && first < .seconds(4), "\(first)")
        #expect(Self.acceptConnections(at: silent.socket) > 0)
        _ = try PostgreSQLConnection(address)
        #expect(Self.acceptConnections(at: silent.socket) == 0, "the lost host was tried again")
    }

    /// Accepts and closes the connections that have arrived at a socket, and returns their number.
    private static func acceptConnections(at socket: Int32) -> Int {
        _ = fcntl(socket, F_SETFL, O_NONBLOCK)
        var count = 0
        while case let connection = accept(socket, nil, nil), connection >= 0 {
            close(connection)
            count += 1
        }
        return count
    }

    @Test func `a lost replica does not delay a connection by its whole timeout if the primary answers`() throws {
        let server = try PostgreSQLServer.shared()
        let silent = try makeSilentHost()
        defer { close(silent.socket) }
        let address =
            "postgresql://safelight@/postgres?host=\(silent.folder.path),\(server.folder.path)&connect_timeout=20"
            + "&target_session_attrs=prefer-standby"
        let time = try ContinuousClock().measure { _ = try PostgreSQLConnection(address) }
        #expect(time < .seconds(10), "\(time)")
    }

    @Test func `target_session_attrs selects the primary server or a replica, and a failure names every host`() throws {
        let primary = try PostgreSQLServer()
        let replica = try PostgreSQLServer(replicaOf: primary)
        func isReplica(_ kind: String) throws -> Bool {
            let address = primary.address(with: replica) + "&target_session_attrs=\(kind)"
            return try PostgreSQLConnection(address).execute("SELECT pg_is_in_recovery()").int64(0, 0) != 0
        }
        #expect(try !isReplica("read-write") && !isReplica("any"))
        #expect(try isReplica("standby") && isReplica("prefer-standby"))
        try replica.kill()
        #expect(try !isReplica("prefer-standby"))
        let error = #expect(throws: PostgreSQLError.self) { try isReplica("standby") }
        #expect(error?.kind == .disconnected)
        for server in [primary, replica] { #expect(error?.message.contains(server.folder.path) == true) }
    }

    @Test func `a replica is connected soon after its promotion, although a lost host precedes it`() async throws {
        let primary = try PostgreSQLServer()
        let replica = try PostgreSQLServer(replicaOf: primary)
        let silent = try makeSilentHost()
        defer { close(silent.socket) }
        let address =
            "postgresql://safelight@/postgres?host=\(silent.folder.path),\(replica.folder.path)&connect_timeout=20"
            + "&target_session_attrs=read-write"
        let (started, startSignal) = AsyncStream.makeStream(of: Void.self)
        let connecting = Task.detached {
            try ContinuousClock().measure {
                startSignal.finish()
                _ = try PostgreSQLConnection(address)
            } / .seconds(1)
        }
        for await _ in started {}
        // Meanwhile the connection has tried the replica, which refused.
        _ = try PostgreSQLConnection(replica.address).execute("SELECT pg_sleep(1)")
        _ = try PostgreSQLConnection(replica.address).execute("SELECT pg_promote()")
        let seconds = try await connecting.value
        #expect(seconds >= 0.9 && seconds < 10, "\(seconds) s")
    }

    @Test func `a statement without an answer in time ends the connection`() throws {
        let connection = try connect()
        #expect(try connection.execute("SELECT 7", withinMilliseconds: 1000).int64(0, 0) == 7)
        let error = #expect(throws: PostgreSQLError.self) {
            try connection.execute("SELECT pg_sleep(20)", withinMilliseconds: 100)
        }
        #expect(error?.kind == .disconnected && !connection.isConnected)
    }
}
