public import JSONValue

/// The error of one request as it stands on the wire: JSON-RPC's `error` member.
public struct RPCError: Error, Sendable, Equatable {
    /// JSON-RPC's own number, PhotoKit's, or ours from 9001 up.
    public var code: Int
    /// The stable name that programs compare; it travels as `data.name`.
    public var name: String
    /// What happened and what to do about it, for people.
    public var message: String
    /// The further members of `data`, beside `name`.
    public var data: JSONObject

    public init(code: Int, name: String, message: String, data: JSONObject = [:]) {
        self.code = code
        self.name = name
        self.message = message
        self.data = data
    }

    /// `{"code", "message", "data": {"name", …}}`.
    public var json: JSON {
        var details: JSONObject = ["name": .string(name)]
        for member in data.members where member.name != "name" { details[member.name] = member.value }
        return ["code": JSON(code), "message": .string(message), "data": .object(details)]
    }

    /// Reads an `error` member; `nil` where it has no whole `code` and no text `message`.
    ///
    /// A peer that sends no `data.name` gets the name that belongs to the code, or `error`.
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

// MARK: - The errors of the transport itself

extension RPCError {
    private static let transportNames: [Int: String] = [
        -32700: "parse_error", -32600: "invalid_request", -32601: "method_not_found", -32602: "invalid_params",
        -32603: "internal_error", 9001: "busy", 9002: "deadline_exceeded", 9003: "connection_lost",
        9004: "limit_exceeded", 3072: "user_cancelled", 3311: "access_denied",
    ]

    /// -32700: the first frame is not JSON.
    public static func parseError(_ message: String) -> RPCError {
        RPCError(code: -32700, name: "parse_error", message: message)
    }

    /// -32600: JSON, but not a request as this protocol has them.
    public static func invalidRequest(_ message: String) -> RPCError {
        RPCError(code: -32600, name: "invalid_request", message: message)
    }

    /// -32600 as well: the id belongs to a request that is still open on this connection.
    public static func requestIDInUse(_ message: String) -> RPCError {
        RPCError(code: -32600, name: "invalid_request", message: message)
    }

    /// -32601: the service has no such method.
    public static func methodNotFound(_ message: String) -> RPCError {
        RPCError(code: -32601, name: "method_not_found", message: message)
    }

    /// -32602: a parameter is missing, unknown or out of its range.
    public static func invalidParams(_ message: String) -> RPCError {
        RPCError(code: -32602, name: "invalid_params", message: message)
    }

    /// -32603: the service failed; its log says why.
    public static func internalError(_ message: String) -> RPCError {
        RPCError(code: -32603, name: "internal_error", message: message)
    }

    /// 9001: nothing was done because too much is under way; the same request may be sent again later.
    public static func busy(_ message: String) -> RPCError {
        RPCError(code: 9001, name: "busy", message: message)
    }

    /// 9002: the request's time was up before its answer.
    public static func deadlineExceeded(_ message: String) -> RPCError {
        RPCError(code: 9002, name: "deadline_exceeded", message: message)
    }

    /// 3072, PhotoKit's number: the caller took the request back.
    public static func cancelled(_ message: String) -> RPCError {
        RPCError(code: 3072, name: "user_cancelled", message: message)
    }

    /// 3311, PhotoKit's number: this client may not do that, now or ever.
    public static func accessDenied(_ message: String) -> RPCError {
        RPCError(code: 3311, name: "access_denied", message: message)
    }

    /// 9003: the connection broke while the request was under way; whether it was carried out is unknown.
    public static func connectionLost(_ message: String) -> RPCError {
        RPCError(code: 9003, name: "connection_lost", message: message)
    }

    /// 9004: something is larger or more than its stated bound.
    public static func limitExceeded(_ message: String) -> RPCError {
        RPCError(code: 9004, name: "limit_exceeded", message: message)
    }
}
