import PostgreSQL
import Synchronization

/// A connection to PostgreSQL for the stores, with their statements in its dialect. It connects when a transaction begins.
final class PostgreSQLSession {
    private let address: String
    private var connection: PostgreSQLConnection? {
        didSet { known.withLock { $0 = connection?.peer } }
    }
    private let known = Mutex<PostgreSQLConnection.Peer?>(nil)
    private var translations: [String: String] = [:]
    /// Returns true if the bytes of a digest are on this machine.
    let isLocal: @Sendable (_ digest: String) -> Bool
    /// Returns the statement that fails in a transaction of a catalog that must not write, or throws; nil for a session
    /// that may always write.
    private let check: (@Sendable () throws -> String)?
    /// Milliseconds for connecting; nil for the time of the address.
    private let connectMilliseconds: Int64?
    /// The maximum number of statements whose translations are cached.
    private static let translationLimit = 1024

    init(
        _ address: String,
        connectMilliseconds: Int64? = nil,
        isLocal: @escaping @Sendable (String) -> Bool = { _ in true },
        check: (@Sendable () throws -> String)? = nil
    ) {
        self.address = address
        self.connectMilliseconds = connectMilliseconds
        self.isLocal = isLocal
        self.check = check
    }

    /// Returns the connection; a lost one is not replaced, because its transaction is lost too.
    func connected() throws(PostgreSQLError) -> PostgreSQLConnection {
        guard let connection, connection.isConnected else {
            throw PostgreSQLError(.disconnected, "the connection to the server is lost")
        }
        return connection
    }

    /// The other end of the newest connection; nil without one. It may be read on any thread.
    var peer: PostgreSQLConnection.Peer? { known.withLock { $0 } }

    var isConnected: Bool { connection?.isConnected == true }
    var isInTransaction: Bool { isConnected && connection?.isInTransaction == true }
    /// True if a statement of the present transaction has failed.
    var hasFailedTransaction: Bool { connection?.hasFailedTransaction != false }

    /// Returns the prepared form of a statement that is written for SQLite.
    func prepare(_ sql: String) throws(PostgreSQLError) -> PreparedStatement {
        if let known = translations[sql] { return try connected().prepare(known) }
        if translations.count >= Self.translationLimit { translations = [:] }
        let translated = PostgreSQLDialect.translate(sql)
        translations[sql] = translated
        return try connected().prepare(translated)
    }

    /// Returns the connection, a new one if there is none or it was lost.
    @discardableResult
    func connect() throws(PostgreSQLError) -> PostgreSQLConnection {
        if let connection, connection.isConnected { return connection }
        var limits = PostgreSQLConnection.Limits()
        limits.connectMilliseconds = connectMilliseconds
        let new = try PostgreSQLConnection(address, limits: limits)
        connection = new
        return new
    }

    /// Begins a transaction that writes, or one that reads from one snapshot.
    func begin(reading: Bool = false) throws {
        _ = try check?()
        _ = try connect()
        try queue(reading ? "BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY" : "BEGIN")
    }

    private func queue(_ sql: String) throws(PostgreSQLError) { try connected().queue(try prepare(sql)) }

    /// Commits the transaction. The server ends a transaction in which a statement has failed by rolling it back.
    func commit() throws {
        if let check { try queue(try check()) }
        let result: PostgreSQLResult
        do throws(PostgreSQLError) {
            result = try connected().execute(try prepare("COMMIT"))
        } catch {
            guard error.sqlState == PostgreSQLSchema.otherEpoch else { throw error }
            throw Self.takenOver
        }
        guard result.command == "COMMIT" else {
            throw PostgreSQLError(.statement, sqlState: "25P02", "the transaction had failed and was rolled back")
        }
    }

    private static let takenOver = CatalogError.standby(writer: "another catalog, which has taken over")

    /// Returns the refusal of a catalog that may no longer write, if the error of a transaction that was rolled back
    /// may come from that: another catalog has written what this one was about to write.
    func refusal(explaining error: any Error) -> CatalogError? {
        guard let check, (error as? PostgreSQLError)?.kind == .constraint else { return nil }
        do {
            _ = try connected().execute(try prepare(try check()))
            return nil
        } catch {
            return (error as? PostgreSQLError)?.sqlState == PostgreSQLSchema.otherEpoch
                ? Self.takenOver : error as? CatalogError
        }
    }

    /// Rolls the transaction back, if the connection still works.
    func rollBack() {
        guard isConnected else { return }
        try? connection?.flush()
        if isInTransaction { _ = try? connection?.execute("ROLLBACK") }
    }

    /// Ends the connection.
    func close() { connection = nil }
}

/// One use of a statement on PostgreSQL: its values and its rows.
final class PostgreSQLExecution {
    private let session: PostgreSQLSession
    private let source: Source
    private var values: [PostgreSQLValue] = []
    private var result: PostgreSQLResult?
    private var row = -1

    private enum Source {
        case prepared(String)
        /// A composed statement, which is not cached.
        case once(String)
    }

    init(_ sql: String, _ session: PostgreSQLSession) {
        self.session = session
        source = .prepared(sql)
    }

    init(once sql: String, _ session: PostgreSQLSession) {
        self.session = session
        source = .once(PostgreSQLDialect.translate(sql))
    }

    func bind(_ value: PostgreSQLValue) { values.append(value) }

    private func prepared(_ sql: String) throws(PostgreSQLError) -> PreparedStatement {
        let statement = try session.prepare(sql)
        for value in values { try statement.bind(value) }
        values.removeAll(keepingCapacity: true)
        return statement
    }

    private func execute() throws(PostgreSQLError) -> PostgreSQLResult {
        switch source {
        case .prepared(let sql): return try session.connected().execute(try prepared(sql))
        case .once(let sql):
            defer { values.removeAll(keepingCapacity: true) }
            return try session.connected().execute(sql, values)
        }
    }

    /// Steps to the next row; returns false after the last one.
    func step() throws(PostgreSQLError) -> Bool {
        if result == nil { result = try execute() }
        row += 1
        return row < (result?.count ?? 0)
    }

    /// Calls a closure for each row while the rows arrive.
    func stream(_ visit: () throws -> Void) throws {
        guard case .once(let sql) = source else {
            while try step() { try visit() }
            return
        }
        defer { reset() }
        try session.connected().each(sql, values) { one in
            (result, row) = (one, 0)
            try visit()
        }
    }

    /// Runs a statement without rows. An error may be reported by a later statement.
    func run() throws(PostgreSQLError) {
        guard case .prepared(let sql) = source else {
            _ = try execute()
            return
        }
        try session.connected().queue(try prepared(sql))
    }

    func runCounting() throws(PostgreSQLError) -> Int { try execute().changedRows }

    /// Runs an insertion into a table with an identity column, and returns the new row's number.
    func insert() throws(PostgreSQLError) -> Int64 {
        try run()
        return try session.connected().execute(try session.prepare("SELECT lastval()")).int64(0, 0)
    }

    func reset() {
        (result, row) = (nil, -1)
        values.removeAll(keepingCapacity: true)
    }

    // MARK: Columns of the current row

    private func read<Value>(_ missing: Value, _ body: (PostgreSQLResult) -> Value) -> Value {
        guard let result, row < result.count else { return missing }
        return body(result)
    }

    func isNull(_ column: Int32) -> Bool { read(true) { $0.isNull(row, Int(column)) } }
    func int64(_ column: Int32) -> Int64 { read(0) { $0.int64(row, Int(column)) } }
    func double(_ column: Int32) -> Double { read(0) { $0.double(row, Int(column)) } }
    func text(_ column: Int32) -> String { read("") { $0.text(row, Int(column)) } }
    func bytes(_ column: Int32) -> [UInt8] { read([]) { $0.bytes(row, Int(column)) } }
    func value(_ column: Int32) -> PostgreSQLValue { read(.null) { $0.value(row, Int(column)) } }

    func withBytes<Value>(_ column: Int32, _ missing: Value, _ body: (UnsafeRawBufferPointer) -> Value) -> Value {
        read(missing) { $0.withBytes(row, Int(column), body) }
    }
}
