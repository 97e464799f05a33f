import Basics
import JSONValue

/// The parsed JSON frame of a message to a server. A client reads the messages that it receives in
/// ``RequestClient/poll(hasEvents:)``.
enum RPCMessage: Sendable {
    struct Request: Sendable {
        var id: JSON
        var method: String
        var params: JSONObject
        /// The requested deadline in microseconds from now; `nil` if there is none.
        var deadline: Int64?
        var credit: Int?
    }

    case request(Request)
    /// Cancels the request `target`; answered if it has an id of its own.
    case cancel(id: JSON?, target: JSON)
    /// Adds byte credit to the request `target`; answered if it has an id of its own.
    case credit(id: JSON?, target: JSON, bytes: Int)
    /// An object without an id, other than the two above. The protocol defines none from a client.
    case notification(method: String)
    /// Must be answered with this error, once; `kind` is the name of its counter.
    case invalid(id: JSON, error: RPCError, kind: String)

    /// Parses the JSON frame of a message, and counts the memory of the values instead of that of the frame.
    init(of message: IncomingMessage, limits: MessagingLimits) {
        let frame = message.frames.first ?? []
        self.init(parsing: frame, limits: limits)
        guard case .request(let request) = self,
            message.reservation?.replaceFrame(of: frame.count, by: request.params, limits: limits) == false
        else { return }
        self = .invalid(id: request.id, error: limits.requestMemoryExceeded, kind: "busy")
    }

    /// Parses the JSON frame of a request.
    init(parsing frame: Bytes, limits: MessagingLimits) {
        // Small requests without params, such as `health`.
        if frame.count <= PlainRequestReader.maxBytes,
            let request = PlainRequestReader.request(in: frame, limits: limits)
        {
            self = .request(request)
            return
        }
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: frame, limits: limits.json)
        } catch {
            self = Self.unparsed(frame, error, limits.json)
            return
        }
        self.init(json, limits: limits)
    }

    init(_ json: JSON, limits: MessagingLimits) {
        func refuse(_ id: JSON, _ kind: String, _ message: String) -> RPCMessage {
            .invalid(id: id, error: .invalidRequest(message), kind: kind)
        }
        guard case .object(let object) = json else {
            self =
                json.arrayValue != nil
                ? refuse(.null, "batch", "batches are not supported; send each request as a message of its own")
                : refuse(.null, "not_an_object", "a request must be a JSON object")
            return
        }
        let id = object["id"].flatMap(Self.validID)
        guard object["jsonrpc"]?.stringValue == "2.0" else {
            self = refuse(id ?? .null, "no_version", "a request must have \"jsonrpc\": \"2.0\"")
            return
        }
        if let sent = object["id"], id == nil {
            let found =
                switch sent {
                case .null: "null"
                case .string: "a longer one"
                case .double: "a number with a fraction or beyond 64 bits"
                default: "something else"
                }
            self = refuse(
                .null,
                "bad_id",
                "an id is a string of at most 128 bytes or a whole number of 64 bits, not \(found)"
            )
            return
        }
        guard let method = object["method"]?.stringValue, !method.isEmpty, method.utf8.count <= 128 else {
            self = refuse(id ?? .null, "no_method", "a request must have a method, a string of 1 to 128 bytes")
            return
        }
        if let other = object.members.first(where: { !Self.memberNames.contains($0.name) })?.name {
            let shown = other.prefix(64)
            self = refuse(
                id ?? .null,
                "unknown_member",
                "a request has the members jsonrpc, id, method and params, not \(shown); parameters belong inside params: "
                    + "{\"params\": {\"\(shown)\": …}}"
            )
            return
        }
        var params: JSONObject = [:]
        if let sent = object["params"] {
            guard case .object(let members) = sent else {
                self = refuse(id ?? .null, "bad_params", "params must be an object with named members")
                return
            }
            params = members
        }
        self = Self.make(id: id, method: method, params: params, limits: limits)
    }

    /// Returns the response to a frame that the parser refused.
    private static func unparsed(_ frame: Bytes, _ error: JSONError, _ limits: JSONLimits) -> RPCMessage {
        let limit: String
        switch error.reason {
        case .tooDeep: limit = "is nested at most \(limits.depth) deep; nest less"
        case .tooManyValues: limit = "has at most \(limits.values) values; split the request"
        default:
            return .invalid(
                id: .null,
                error: .parseError("the first frame is not JSON: \(error); send one JSON-RPC object in UTF-8"),
                kind: "parse_error"
            )
        }
        // The frame may be a request. The response has its id, so that a client with several open requests can assign
        // it.
        return .invalid(
            id: RPCMessageHead(frame).id ?? .null,
            error: .limitExceeded("the JSON of a request \(limit)"),
            kind: "json_too_large"
        )
    }

    private static let memberNames = ["jsonrpc", "id", "method", "params"]

    private static func make(id: JSON?, method: String, params: JSONObject, limits: MessagingLimits) -> RPCMessage {
        func refuse(_ kind: String, _ parameter: String, _ message: String) -> RPCMessage {
            // A notification has no response, whatever is wrong with it (JSON-RPC 2.0, section 4.1).
            guard let id else { return .notification(method: method) }
            var error = RPCError.invalidParams(message)
            error.data["parameter"] = .string(String(parameter.prefix(64)))
            return .invalid(id: id, error: error, kind: kind)
        }
        var params = params
        // Null counts as absent. The methods of the transport are answered at once and use neither of the two.
        let isOfTransport = method == "rpc.cancel" || method == "rpc.credit"
        if isOfTransport || params["deadlineMs"]?.isNull == true { params["deadlineMs"] = nil }
        if isOfTransport || params["credit"]?.isNull == true { params["credit"] = nil }
        switch method {
        case "rpc.cancel":
            let other = params.members.first { $0.name != "id" }?.name
            guard let target = params["id"].flatMap(validID), other == nil else {
                return refuse("bad_cancel", other ?? "id", "rpc.cancel takes id, the id of an open request")
            }
            return .cancel(id: id, target: target)
        case "rpc.credit":
            let message = "rpc.credit takes id and bytes, a number from 0 up"
            let other = params.members.first { $0.name != "id" && $0.name != "bytes" }?.name
            guard let target = params["id"].flatMap(validID), other == nil else {
                return refuse("bad_credit", other ?? "id", message)
            }
            guard let bytes = params["bytes"]?.intValue, bytes >= 0 else {
                return refuse("bad_credit", "bytes", message)
            }
            return .credit(id: id, target: target, bytes: Int(clamping: min(bytes, Int64(limits.maxCredit))))
        default: break
        }
        guard let id else { return .notification(method: method) }
        var request = Request(id: id, method: method, params: params)
        if let sent = params["deadlineMs"] {
            let maximum = limits.maxDeadline.microseconds / 1000
            guard let milliseconds = sent.intValue, milliseconds >= 1, milliseconds <= maximum else {
                return refuse("bad_deadline", "deadlineMs", "deadlineMs must be a whole number from 1 to \(maximum)")
            }
            request.deadline = milliseconds * 1000
            request.params["deadlineMs"] = nil
        }
        if let sent = params["credit"] {
            guard let bytes = sent.intValue, bytes >= 0 else {
                return refuse("bad_credit", "credit", "credit must be a whole number of bytes from 0 up")
            }
            request.credit = Int(clamping: min(bytes, Int64(limits.maxCredit)))
            request.params["credit"] = nil
        }
        return .request(request)
    }

    /// Returns the value if it can be a request's id: a string of at most 128 bytes or an integer.
    static func validID(_ json: JSON) -> JSON? {
        switch json {
        case .int: json
        case .string(let text) where text.utf8.count <= 128: json
        default: nil
        }
    }
}

// MARK: - Parts that are read without parsing the frame

/// The frames before the JSON frame that a client expects back unchanged.
///
/// A DEALER sends none. REQ sends an empty delimiter, and with `ZMQ_REQ_CORRELATE` a request id of four bytes before
/// it. No JSON-RPC request fits in four bytes, so these frames cannot be mistaken for content.
enum ReplyEnvelope {
    static func length(in frames: ArraySlice<Bytes>) -> Int {
        guard let first = frames.first else { return 0 }
        if first.isEmpty { return 1 }
        guard first.count == 4, frames.count > 1, frames[frames.startIndex + 1].isEmpty else { return 0 }
        return 2
    }
}

/// The id and the method of a large request, read from its first bytes without parsing all of it.
struct RPCMessageHead {
    private(set) var id: JSON?
    /// Nil if it does not precede `params` within the first ``length`` bytes.
    private(set) var method: String?

    /// The number of bytes that are read: enough for an id and a method of maximum length with escapes.
    static let length = 4096

    init(_ frame: Bytes) {
        let head = Bytes(frame.prefix(Self.length))
        // Invalid JSON is ignored here: the parser reports it.
        try? JSONCursor.read(head) { cursor throws(JSONError) in
            try cursor.enterObject()
            while let name = try cursor.nextMember() {
                switch name {
                case "id": id = RPCMessage.validID(try JSON(parsing: head[try cursor.skip()]))
                case "method": method = try cursor.parseString()
                case "params": return
                default: try cursor.skip()
                }
            }
        }
    }
}

// MARK: - Writing

/// Encodes the JSON frames of both sides.
enum RPCMessageWriter {
    static func request(id: JSON, method: String, params: JSONObject) -> Bytes {
        var writer = JSONWriter()
        writer.append("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.write(id)
        writer.append(",\"method\":")
        writer.write(method)
        writer.append(",\"params\":")
        writer.write(.object(params))
        writer.append("}")
        return writer.output
    }

    static func notification(method: String, params: JSONObject) -> Bytes {
        var writer = JSONWriter()
        writer.append("{\"jsonrpc\":\"2.0\",\"method\":")
        writer.write(method)
        writer.append(",\"params\":")
        writer.write(.object(params))
        writer.append("}")
        return writer.output
    }

    /// Encodes a notification whose params are an already encoded object, in pieces; a member `id` is added to it.
    static func notification(method: String, encoded params: [Bytes], id: JSON) -> Bytes {
        let count = params.reduce(0) { $0 + $1.count }
        var writer = JSONWriter(capacity: count + 256)
        writer.append("{\"jsonrpc\":\"2.0\",\"method\":")
        writer.write(method)
        writer.append(",\"params\":")
        for (index, piece) in params.enumerated() {
            // Without the closing brace.
            writer.append(encoded: index == params.count - 1 ? piece[..<(piece.count - 1)] : piece[...])
        }
        // An empty object has two bytes and needs no comma.
        writer.append(count > 2 ? ",\"id\":" : "\"id\":")
        writer.write(id)
        writer.append("}}")
        return writer.output
    }

    /// Encodes a response whose result is already encoded, in pieces.
    static func result(id: JSON, encoded result: [Bytes]) -> Bytes {
        var writer = JSONWriter(capacity: result.reduce(256) { $0 + $1.count })
        begin(&writer, id)
        writer.append(",\"result\":")
        for piece in result { writer.append(encoded: piece) }
        writer.append("}")
        return writer.output
    }

    static func result(id: JSON, _ result: JSON) -> Bytes {
        var writer = JSONWriter()
        begin(&writer, id)
        writer.append(",\"result\":")
        writer.write(result)
        writer.append("}")
        return writer.output
    }

    static func error(id: JSON, _ error: RPCError) -> Bytes {
        var writer = JSONWriter()
        begin(&writer, id)
        writer.append(",\"error\":")
        writer.write(error.json)
        writer.append("}")
        return writer.output
    }

    private static func begin(_ writer: inout JSONWriter, _ id: JSON) {
        writer.append("{\"jsonrpc\":\"2.0\",\"id\":")
        writer.write(id)
    }
}

extension MessagingLimits {
    /// Returns the error if a message exceeds these limits, otherwise nil. A peer would refuse such a message, and
    /// libzmq would close the connection.
    func violation(of frames: [Bytes]) -> RPCError? {
        if frames.count > maxFrames {
            return .limitExceeded("a message has at most \(maxFrames) frames, this one \(frames.count)")
        }
        if let large = frames.dropFirst().first(where: { $0.count > maxAttachmentBytes }) {
            return .limitExceeded("an attachment has at most \(maxAttachmentBytes) bytes, this one \(large.count)")
        }
        let total = frames.reduce(0) { $0 + $1.count }
        if total > maxMessageBytes {
            return .limitExceeded("a message has at most \(maxMessageBytes) bytes, this one \(total)")
        }
        return nil
    }
}
