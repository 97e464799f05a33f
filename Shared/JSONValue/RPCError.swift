/// The error of one request: JSON-RPC's `error` member.
public struct RPCError: Error, Sendable, Equatable {
    /// JSON-RPC's own number, PhotoKit's, or one of Safelight's, from 9001 up.
    public var code: Int
    /// The stable name that programs compare; sent as `data.name`.
    public var name: String
    /// A description for people: the problem and its remedy.
    public var message: String
    /// The members of `data` other than `name`.
    public var data: JSONObject

    /// Makes an error; a member `name` in `data` is not sent.
    public init(code: Int, name: String, message: String, data: JSONObject = [:]) {
        self.code = code
        self.name = name
        self.message = message
        self.data = data
    }

    /// The JSON form: `{"code", "message", "data": {"name", …}}`.
    public var json: JSON {
        var details: JSONObject = ["name": .string(name)]
        for member in data.members where member.name != "name" { details[member.name] = member.value }
        return ["code": JSON(code), "message": .string(message), "data": .object(details)]
    }

    /// Parses an `error` member; `nil` if it has no integer `code` or no string `message`.
    ///
    /// Without `data.name` the name is that of the code, or `error` for an unknown code.
    public init?(json: JSON) {
        guard let number = json["code"]?.intValue, let code = Int(exactly: number),
            let message = json["message"]?.stringValue
        else { return nil }
        var details = json["data"]?.objectValue ?? [:]
        let name = details["name"]?.stringValue ?? Self.transportNames[code] ?? "error"
        details["name"] = nil
        self.init(code: code, name: name, message: message, data: details)
    }
}

// MARK: - Errors of the transport itself

extension RPCError {
    private static let transportNames: [Int: String] = [
        -32700: "parse_error", -32600: "invalid_request", -32601: "method_not_found", -32602: "invalid_params",
        -32603: "internal_error", 9001: "busy", 9002: "deadline_exceeded", 9003: "connection_lost",
        9004: "limit_exceeded", 3072: "user_cancelled", 3301: "interrupted", 3311: "access_denied",
    ]

    /// Makes -32700: the first frame is not JSON.
    public static func parseError(_ message: String) -> RPCError {
        RPCError(code: -32700, name: "parse_error", message: message)
    }

    /// Makes -32600: the JSON is not a request of this protocol.
    public static func invalidRequest(_ message: String) -> RPCError {
        RPCError(code: -32600, name: "invalid_request", message: message)
    }

    /// Makes -32600 for an id that belongs to an open request of this connection.
    public static func requestIDInUse(_ message: String) -> RPCError {
        RPCError(code: -32600, name: "invalid_request", message: message)
    }

    /// Makes -32601: the service has no such method.
    public static func methodNotFound(_ message: String) -> RPCError {
        RPCError(code: -32601, name: "method_not_found", message: message)
    }

    /// Makes -32602: a parameter is missing, unknown or out of range.
    public static func invalidParams(_ message: String) -> RPCError {
        RPCError(code: -32602, name: "invalid_params", message: message)
    }

    /// Makes -32603: the service failed; its log has the reason.
    public static func internalError(_ message: String) -> RPCError {
        RPCError(code: -32603, name: "internal_error", message: message)
    }

    /// Makes 9001: nothing was done because too many requests are open; the same request may be sent again later.
    public static func busy(_ message: String) -> RPCError {
        RPCError(code: 9001, name: "busy", message: message)
    }

    /// Makes 9002: the deadline passed before the response.
    public static func deadlineExceeded(_ message: String) -> RPCError {
        RPCError(code: 9002, name: "deadline_exceeded", message: message)
    }

    /// Makes 3072, PhotoKit's number: the request was cancelled by its caller.
    public static func cancelled(_ message: String) -> RPCError {
        RPCError(code: 3072, name: "user_cancelled", message: message)
    }

    /// Makes 3301, PhotoKit's number: the service ended the request, which may be sent again.
    public static func interrupted(_ message: String) -> RPCError {
        RPCError(code: 3301, name: "interrupted", message: message)
    }

    /// Makes 3311, PhotoKit's number: the client is not allowed to do this, and retrying does not help.
    public static func accessDenied(_ message: String) -> RPCError {
        RPCError(code: 3311, name: "access_denied", message: message)
    }

    /// Makes 9003: the connection broke while the request was open; whether it was carried out is unknown.
    public static func connectionLost(_ message: String) -> RPCError {
        RPCError(code: 9003, name: "connection_lost", message: message)
    }

    /// Makes 9004: a size or number exceeds its limit.
    public static func limitExceeded(_ message: String) -> RPCError {
        RPCError(code: 9004, name: "limit_exceeded", message: message)
    }
}
