import PostgreSQL

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
        try session.connected().each(sql, values) { rowResult in
            (result, row) = (rowResult, 0)
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
