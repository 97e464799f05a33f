/// A failure of a connection to PostgreSQL, or an error that the server reported.
public struct PostgreSQLError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The kinds of failures that callers treat differently.
    public enum Kind: Sendable, Equatable {
        /// There is no connection: the server cannot be reached, or has ended it.
        case disconnected
        /// The server has no space or too few resources.
        case outOfResources
        /// The server accepts no writes: it is a replica, or read-only.
        case readOnly
        /// The transaction was ended because of another one; it can be tried again.
        case conflict
        /// A table or a column of the statement does not exist in the server's schema.
        case schema
        /// A value violates a constraint of a table.
        case constraint
        /// The server's files are damaged or cannot be read.
        case storage
        /// Any other error of a statement.
        case statement
        /// A limit of this module was exceeded.
        case limit
    }

    /// The kind of failure.
    public let kind: Kind
    /// The five characters of SQLSTATE; empty if the server sent none.
    public let sqlState: String
    /// The text of the server or of libpq. It may contain values of a row.
    public let message: String

    /// Creates an error.
    public init(_ kind: Kind, sqlState: String = "", _ message: String) {
        self.kind = kind
        self.sqlState = sqlState
        self.message = message
    }

    /// Creates an error that the server reported.
    init(sqlState: String, message: String) {
        self.init(Self.kind(sqlState), sqlState: sqlState, message)
    }

    /// The text for logs.
    public var description: String { sqlState.isEmpty ? message : "\(message) (SQLSTATE \(sqlState))" }

    private static func kind(_ sqlState: String) -> Kind {
        switch sqlState {
        case "", "57P01", "57P02", "57P03", "57P05": return .disconnected
        case "25006": return .readOnly
        case "40001", "40P01", "55P03": return .conflict
        case "42P01", "42703": return .schema
        default: break
        }
        switch sqlState.prefix(2) {
        case "08": return .disconnected
        case "53": return .outOfResources
        case "58", "XX": return .storage
        case "23": return .constraint
        default: return .statement
        }
    }
}
