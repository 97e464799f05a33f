import CPQ
import Glibc

/// A connection to a PostgreSQL server. Its calls block the thread; one thread uses it at a time.
///
/// Statements whose rows are not needed can be queued: they are sent at once, and their results are read together with
/// that of the next statement that is executed. A queued statement that fails is reported by that one.
public final class PostgreSQLConnection {
    /// Limits of one connection.
    public struct Limits: Sendable {
        /// The maximum number of prepared statements; the oldest are removed when there are more.
        public var preparedStatements = 512
        /// The maximum number of queued statements, and of the bytes of their values, before their results are read.
        /// Both ends would wait for each other if neither read.
        public var queuedStatements = 256
        public var queuedBytes = 1 << 20
        /// The maximum number of seconds for connecting, if the connection string does not name one.
        public var connectSeconds = 10
        /// A further limit for connecting, in milliseconds; nil for none.
        public var connectMilliseconds: Int64?

        /// The default limits.
        public init() {}
    }

    /// The server of this connection, through which another thread can end the connection.
    public let peer: Peer

    private let connection: OpaquePointer
    private let limits: Limits
    private var prepared: [String: PreparedStatement] = [:]
    private var preparedCount = 0
    private var queued = 0
    private var queuedBytes = 0
    private var isPipelining = false

    /// Connects to a server. Of several hosts, the one that was connected last is tried first.
    ///
    /// - Parameter address: a connection string or address as libpq accepts it, for example
    ///   `postgresql://host/database`
    public init(_ address: String, limits: Limits = Limits()) throws(PostgreSQLError) {
        self.limits = limits
        connection = try ConnectionAttempts(address, limits: limits).connect()
        peer = Peer(connection)
        // libpq prints notices on standard error unless a receiver is set.
        PQsetNoticeReceiver(connection, { _, _ in }, nil)
        guard PQserverVersion(connection) >= Self.oldestVersion else {
            throw PostgreSQLError(.statement, "PostgreSQL \(serverVersion) is too old; version 13 or newer is needed")
        }
    }

    deinit { PQfinish(connection) }

    private static let oldestVersion: Int32 = 130_000

    // MARK: State

    /// The server's version, for example `15.14`.
    public var serverVersion: String {
        PQparameterStatus(connection, "server_version").map { String(cString: $0) } ?? ""
    }

    /// True if the connection works, as far as is known without asking the server.
    public var isConnected: Bool { PQstatus(connection) == CONNECTION_OK }

    /// True within a transaction, even within one that has failed.
    public var isInTransaction: Bool {
        queued > 0 || [PQTRANS_INTRANS, PQTRANS_INERROR, PQTRANS_ACTIVE].contains(PQtransactionStatus(connection))
    }

    /// True if a statement of the current transaction has failed: the transaction can only be rolled back.
    public var hasFailedTransaction: Bool { PQtransactionStatus(connection) == PQTRANS_INERROR || !isConnected }

    private func failure() -> PostgreSQLError {
        let text = PQerrorMessage(connection).map { String(cString: $0) } ?? ""
        return PostgreSQLError(isConnected ? .statement : .disconnected, Self.trimmed(text))
    }

    static func trimmed(_ text: String) -> String {
        text.split(separator: "\n").map { $0.trimmingPrefix { $0 == " " } }.joined(separator: " ")
    }

    private func failure(_ result: OpaquePointer) -> PostgreSQLError {
        func field(_ code: Character) -> String {
            PQresultErrorField(result, Int32(code.asciiValue ?? 0)).map { String(cString: $0) } ?? ""
        }
        let state = field("C")
        var text = field("M")
        if text.isEmpty { text = PQresultErrorMessage(result).map { String(cString: $0) } ?? "" }
        if text.isEmpty { return failure() }
        return PostgreSQLError(sqlState: state, message: Self.trimmed(text))
    }

    // MARK: Statements

    /// Returns the prepared form of a statement, which is cached.
    public func prepare(_ sql: String) throws(PostgreSQLError) -> PreparedStatement {
        if let known = prepared[sql] {
            known.reset()
            return known
        }
        try flush()
        if prepared.count >= limits.preparedStatements {
            prepared = [:]
            _ = try execute("DEALLOCATE ALL")
        }
        preparedCount += 1
        let name = "s\(preparedCount)"
        PQclear(try checked(PQprepare(connection, name, sql, 0, nil)))
        let description = try checked(PQdescribePrepared(connection, name))
        defer { PQclear(description) }
        let types = (0..<PQnparams(description)).map { PQparamtype(description, $0) }
        let statement = PreparedStatement(name: name, types: types)
        prepared[sql] = statement
        return statement
    }

    /// Executes a prepared statement with the values bound to it, after those that are queued.
    public func execute(_ statement: PreparedStatement) throws(PostgreSQLError) -> PostgreSQLResult {
        defer { statement.reset() }
        guard queued > 0 else {
            let result = statement.parameters.withArrays { values, lengths, formats in
                PQexecPrepared(
                    connection,
                    statement.name,
                    Int32(statement.parameters.count),
                    values,
                    lengths,
                    formats,
                    1
                )
            }
            return PostgreSQLResult(try checked(result))
        }
        try send(statement)
        guard let result = try finishPipeline(returnsLast: true) else {
            throw PostgreSQLError(.disconnected, "the server has sent no result")
        }
        return PostgreSQLResult(result)
    }

    /// Sends a prepared statement whose result is read later; see ``flush()``.
    public func queue(_ statement: PreparedStatement) throws(PostgreSQLError) {
        defer { statement.reset() }
        try send(statement)
        if queued >= limits.queuedStatements || queuedBytes >= limits.queuedBytes { try flush() }
    }

    private func send(_ statement: PreparedStatement) throws(PostgreSQLError) {
        if !isPipelining {
            guard PQenterPipelineMode(connection) == 1 else { throw failure() }
            isPipelining = true
        }
        let sent = statement.parameters.withArrays { values, lengths, formats in
            PQsendQueryPrepared(
                connection,
                statement.name,
                Int32(statement.parameters.count),
                values,
                lengths,
                formats,
                1
            )
        }
        guard sent == 1 else { throw failure() }
        queued += 1
        queuedBytes += statement.parameters.size
    }

    /// Waits for the results of all queued statements.
    ///
    /// - Throws: the error of the first statement that failed; later ones were not carried out
    public func flush() throws(PostgreSQLError) {
        guard isPipelining else { return }
        if let result = try finishPipeline(returnsLast: false) { PQclear(result) }
    }

    /// Reads the results of all queued statements and ends the pipeline.
    ///
    /// - Parameter returnsLast: true to return the result of the last statement
    private func finishPipeline(returnsLast: Bool) throws(PostgreSQLError) -> OpaquePointer? {
        var first: PostgreSQLError?
        var last: OpaquePointer?
        let count = queued
        (queued, queuedBytes) = (0, 0)
        guard PQpipelineSync(connection) == 1 else { throw failure() }
        for index in 0..<count {
            // Each statement has one result, followed by a missing one.
            while let result = PQgetResult(connection) {
                let status = PQresultStatus(result)
                if status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK {
                    if returnsLast, index == count - 1 { last = result } else { PQclear(result) }
                } else {
                    if first == nil, status != PGRES_PIPELINE_ABORTED { first = failure(result) }
                    PQclear(result)
                }
            }
            guard isConnected else { break }
        }
        while isConnected, let result = PQgetResult(connection) {
            let isSync = PQresultStatus(result) == PGRES_PIPELINE_SYNC
            PQclear(result)
            if isSync { break }
        }
        isPipelining = false
        let isEnded = PQexitPipelineMode(connection) == 1
        if first == nil, !isEnded || !isConnected { first = failure() }
        if let first {
            if let last { PQclear(last) }
            throw first
        }
        return last
    }

    /// Executes a statement once, with values of their natural types.
    public func execute(_ sql: String, _ values: [PostgreSQLValue] = []) throws(PostgreSQLError) -> PostgreSQLResult {
        try flush()
        let (types, parameters) = try ParameterBuffer.natural(values)
        let result = parameters.withArrays { values, lengths, formats in
            PQexecParams(connection, sql, Int32(types.count), types, values, lengths, formats, 1)
        }
        return PostgreSQLResult(try checked(result))
    }

    /// Calls a closure with each row of a query as it arrives, so that memory does not grow with the result.
    ///
    /// - Parameter visit: receives a result of one row; it must not use this connection, and throws to stop
    public func each(
        _ sql: String,
        _ values: [PostgreSQLValue] = [],
        _ visit: (PostgreSQLResult) throws -> Void
    ) throws {
        try flush()
        let (types, parameters) = try ParameterBuffer.natural(values)
        let sent = parameters.withArrays { values, lengths, formats in
            PQsendQueryParams(connection, sql, Int32(types.count), types, values, lengths, formats, 1)
        }
        guard sent == 1, PQsetSingleRowMode(connection) == 1 else { throw failure() }
        var columns: [UInt32]?
        do {
            while let result = PQgetResult(connection) {
                guard PQresultStatus(result) == PGRES_SINGLE_TUPLE else {
                    // The last result has no rows, or is an error.
                    PQclear(try checked(result))
                    continue
                }
                let row = PostgreSQLResult(result, types: columns)
                columns = row.types
                try visit(row)
            }
        } catch {
            cancel()
            while let result = PQgetResult(connection) { PQclear(result) }
            throw error
        }
    }

    /// Asks the server to end the running statement.
    private func cancel() {
        guard let cancellation = PQgetCancel(connection) else { return }
        defer { PQfreeCancel(cancellation) }
        var reason = [CChar](repeating: 0, count: 256)
        PQcancel(cancellation, &reason, Int32(reason.count))
    }

    /// Executes a statement without values, and ends the connection if the server does not answer in time.
    public func execute(_ sql: String, withinMilliseconds limit: Int32) throws(PostgreSQLError) -> PostgreSQLResult {
        try flush()
        guard PQsendQueryParams(connection, sql, 0, nil, nil, nil, nil, 1) == 1 else { throw failure() }
        let end = ConnectionAttempts.now + Int64(limit)
        while PQisBusy(connection) == 1 {
            var event = pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
            let remaining = Int32(max(0, end - ConnectionAttempts.now))
            guard remaining > 0, poll(&event, 1, remaining) != 0 else {
                // libpq has no time limit for a result: the socket is shut down, and the connection cannot be used
                // again.
                shutdown(PQsocket(connection), Int32(SHUT_RDWR))
                _ = PQconsumeInput(connection)
                throw PostgreSQLError(.disconnected, "the server did not answer in \(limit) ms")
            }
            guard PQconsumeInput(connection) == 1 else { throw failure() }
        }
        let result = PQgetResult(connection)
        while let more = PQgetResult(connection) { PQclear(more) }
        return PostgreSQLResult(try checked(result))
    }

    /// Executes several statements without values.
    public func execute(script: String) throws(PostgreSQLError) {
        try flush()
        PQclear(try checked(PQexec(connection, script)))
    }

    private func checked(_ result: OpaquePointer?) throws(PostgreSQLError) -> OpaquePointer {
        guard let result else { throw failure() }
        switch PQresultStatus(result) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY, PGRES_COPY_IN, PGRES_COPY_OUT: return result
        default:
            let error = failure(result)
            PQclear(result)
            throw error
        }
    }

    // MARK: Bulk copies

    /// Sends rows to `COPY table (columns) FROM STDIN (FORMAT binary)`.
    ///
    /// - Parameter next: returns the next row; nil at the end. The values have the types of the columns.
    /// - Returns: the number of rows
    public func copyIn(
        _ sql: String,
        _ next: () throws -> [PostgreSQLValue]?
    ) throws -> Int {
        try flush()
        PQclear(try checked(PQexec(connection, sql)))
        var count = 0
        // The header: the signature, no flags, and no extension.
        var block: [UInt8] = Array("PGCOPY\n".utf8) + [0xFF, 0x0D, 0x0A, 0] + [UInt8](repeating: 0, count: 8)
        do {
            while let row = try next() {
                CopyFormat.append(row, to: &block)
                count += 1
                if block.count >= Self.copyBlock { try send(&block) }
            }
            block += [0xFF, 0xFF]
            try send(&block)
        } catch {
            _ = PQputCopyEnd(connection, "the sender has failed")
            while let result = PQgetResult(connection) { PQclear(result) }
            throw error
        }
        guard PQputCopyEnd(connection, nil) == 1 else { throw failure() }
        var problem: PostgreSQLError?
        while let result = PQgetResult(connection) {
            if PQresultStatus(result) != PGRES_COMMAND_OK { problem = problem ?? failure(result) }
            PQclear(result)
        }
        if let problem { throw problem }
        return count
    }

    private static let copyBlock = 256 << 10

    private func send(_ block: inout [UInt8]) throws(PostgreSQLError) {
        let sent = block.withUnsafeBytes { bytes in
            PQputCopyData(connection, bytes.baseAddress?.assumingMemoryBound(to: CChar.self), Int32(bytes.count))
        }
        guard sent == 1 else { throw failure() }
        block.removeAll(keepingCapacity: true)
    }

    // MARK: Notifications

    /// A notification of the server.
    public struct Notification: Sendable, Equatable {
        /// The channel's name.
        public var channel: String
        /// The text that was sent.
        public var payload: String
    }

    /// Returns the notifications that have arrived; waits for one if there are none.
    ///
    /// - Parameter milliseconds: the maximum time to wait
    public func notifications(waiting milliseconds: Int32) throws(PostgreSQLError) -> [Notification] {
        try flush()
        var found = try receivedNotifications()
        guard found.isEmpty, milliseconds > 0 else { return found }
        var event = pollfd(fd: PQsocket(connection), events: Int16(POLLIN), revents: 0)
        if poll(&event, 1, milliseconds) > 0 { found = try receivedNotifications() }
        return found
    }

    private func receivedNotifications() throws(PostgreSQLError) -> [Notification] {
        guard PQconsumeInput(connection) == 1 else { throw failure() }
        var found: [Notification] = []
        while let notification = PQnotifies(connection) {
            found.append(
                Notification(
                    channel: String(cString: notification.pointee.relname),
                    payload: String(cString: notification.pointee.extra)
                )
            )
            PQfreemem(notification)
        }
        return found
    }
}
