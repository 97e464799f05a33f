import PostgreSQL
import Synchronization

/// A connection to PostgreSQL for the stores, with their statements in its dialect. It connects when a transaction
/// begins.
final class PostgreSQLSession {
    private let address: String
    private var connection: PostgreSQLConnection? {
        didSet { currentPeer.withLock { $0 = connection?.peer } }
    }
    private let currentPeer = Mutex<PostgreSQLConnection.Peer?>(nil)
    private var translations: [String: String] = [:]
    /// Returns true if the bytes of a digest are on this machine.
    let isLocal: @Sendable (_ digest: String) -> Bool
    /// Returns the statement that fails in a transaction of a catalog that must not write, or throws; nil for a session
    /// that may always write.
    private let check: (@Sendable () throws -> String)?
    /// The maximum number of milliseconds for connecting; nil for the limit in the address.
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
    var peer: PostgreSQLConnection.Peer? { currentPeer.withLock { $0 } }

    var isConnected: Bool { connection?.isConnected == true }
    var isInTransaction: Bool { isConnected && connection?.isInTransaction == true }
    /// True if a statement of the current transaction has failed.
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
