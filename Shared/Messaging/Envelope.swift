import JSONValue

/// The frames before the JSON frame that a client wants back as they are.
///
/// A DEALER sends none. REQ sends an empty delimiter, and with `ZMQ_REQ_CORRELATE` four bytes of its own before it; no
/// request fits in four bytes, so the two cannot be taken for content.
enum EnvelopePrefix {
    static func length(in frames: ArraySlice<Bytes>) -> Int {
        guard let first = frames.first else { return 0 }
        if first.isEmpty { return 1 }
        guard first.count == 4, frames.count > 1, frames[frames.startIndex + 1].isEmpty else { return 0 }
        return 2
    }
}

/// What one JSON frame asks for.
enum Envelope: Sendable {
    struct Request: Sendable {
        var id: JSON
        var method: String
        var params: JSONObject
        /// Microseconds the caller gives; `nil` where it names none.
        var deadline: Int64?
        var credit: Int?
    }

    case request(Request)
    /// Takes back the request `target`; answered where it has an id of its own.
    case cancel(id: JSON?, target: JSON)
    /// Gives the request `target` further byte credit.
    case credit(id: JSON?, target: JSON, bytes: Int)
    /// An object without an id: nothing on this protocol, beside the two above.
    case notification(method: String)
    /// To be answered with this error, once; `kind` is what it is counted as.
    case invalid(id: JSON, error: RPCError, kind: String)

    /// Reads the JSON frame of a request.
    init(parsing frame: Bytes, limits: MessagingLimits) {
        let json: JSON
        do throws(JSONError) {
            json = try JSON(parsing: frame, limits: limits.json)
        } catch {
            self = .invalid(
                id: .null,
                error: .parseError("the first frame is not JSON: \(error); send one JSON-RPC object in UTF-8"),
                kind: "parse_error"
            )
            return
        }
        self.init(json, limits: limits)
    }

    init(_ json: JSON, limits: MessagingLimits) {
        func refuse(_ id: JSON, _ kind: String, _ message: String) -> Envelope {
            .invalid(id: id, error: .invalidRequest(message), kind: kind)
        }
        guard case .object(let object) = json else {
            self =
                json.arrayValue != nil
                ? refuse(.null, "batch", "batches are not taken; send each request as a message of its own")
                : refuse(.null, "not_an_object", "a request is a JSON object")
            return
        }
        let id = object["id"].flatMap(Self.validID)
        guard object["jsonrpc"]?.stringValue == "2.0" else {
            self = refuse(id ?? .null, "no_version", "a request has \"jsonrpc\": \"2.0\"")
            return
        }
        if let sent = object["id"], id == nil {
            let found = sent.isNull ? "null" : "something else"
            self = refuse(.null, "bad_id", "an id is a string of at most 128 bytes or a whole number, not \(found)")
            return
        }
        guard let method = object["method"]?.stringValue, !method.isEmpty, method.utf8.count <= 128 else {
            self = refuse(id ?? .null, "no_method", "a request has a method, a string of 1 to 128 bytes")
            return
        }
        var params: JSONObject = [:]
        if let sent = object["params"] {
            guard case .object(let members) = sent else {
                self = refuse(id ?? .null, "bad_params", "params is an object with named members")
                return
            }
            params = members
        }
        self = Self.make(id: id, method: method, params: params, limits: limits)
    }

    private static func make(id: JSON?, method: String, params: JSONObject, limits: MessagingLimits) -> Envelope {
        func refuse(_ kind: String, _ message: String) -> Envelope {
            .invalid(id: id ?? .null, error: .invalidParams(message), kind: kind)
        }
        switch method {
        case "rpc.cancel":
            guard let target = params["id"].flatMap(validID), params.count == 1 else {
                return refuse("bad_cancel", "rpc.cancel takes id, the id of an open request")
            }
            return .cancel(id: id, target: target)
        case "rpc.credit":
            guard let target = params["id"].flatMap(validID), let bytes = params["bytes"]?.intValue, bytes >= 0,
                params.count == 2
            else { return refuse("bad_credit", "rpc.credit takes id and bytes, a number from 0 up") }
            return .credit(id: id, target: target, bytes: Int(clamping: min(bytes, Int64(limits.maxCredit))))
        default: break
        }
        guard let id else { return .notification(method: method) }
        var request = Request(id: id, method: method, params: params)
        if let sent = params["deadlineMs"] {
            let longest = limits.maxDeadline.microseconds / 1000
            guard let milliseconds = sent.intValue, milliseconds >= 1, milliseconds <= longest else {
                return refuse("bad_deadline", "deadlineMs is a whole number from 1 to \(longest)")
            }
            request.deadline = milliseconds * 1000
            request.params["deadlineMs"] = nil
        }
        if let sent = params["credit"] {
            guard let bytes = sent.intValue, bytes >= 0 else {
                return refuse("bad_credit", "credit is a whole number of bytes from 0 up")
            }
            request.credit = Int(clamping: min(bytes, Int64(limits.maxCredit)))
            request.params["credit"] = nil
        }
        return .request(request)
    }

    /// The id of a request: a string of at most 128 bytes or a whole number.
    static func validID(_ json: JSON) -> JSON? {
        switch json {
        case .int: json
        case .string(let text) where text.utf8.count <= 128: json
        default: nil
        }
    }
}

/// The id and the method of a large request, read from its first bytes without reading the whole of it.
struct EnvelopeHead {
    private(set) var id: JSON?
    /// Nil where it does not stand before `params`, within the first ``length`` bytes.
    private(set) var method: String?

    /// Bytes that are looked at: enough for both at their longest, escaped.
    static let length = 4096

    init(_ frame: Bytes) {
        let head = Bytes(frame.prefix(Self.length))
        // Where it is no JSON, parsing it says so.
        try? JSONCursor.reading(head) { cursor throws(JSONError) in
            try cursor.enterObject()
            while let name = try cursor.nextMember() {
                switch name {
                case "id": id = Envelope.validID(try JSON(parsing: head[try cursor.skip()]))
                case "method": method = try cursor.string()
                case "params": return
                default: try cursor.skip()
                }
            }
        }
    }
}

// MARK: - Writing

/// The JSON frames that both ends write.
enum EnvelopeWriter {
    static func request(id: JSON, method: String, params: JSONObject) -> Bytes {
        let object: JSON = [
            "jsonrpc": "2.0", "id": id, "method": .string(method), "params": .object(params),
        ]
        return object.bytes
    }

    static func notification(method: String, params: JSONObject) -> Bytes {
        let object: JSON = ["jsonrpc": "2.0", "method": .string(method), "params": .object(params)]
        return object.bytes
    }

    /// The same with params that are an object in its encoded form, in pieces; they get one more member, `id`.
    static func notification(method: String, encoded params: [Bytes], id: JSON) -> Bytes {
        var bytes: Bytes = []
        let count = params.reduce(0) { $0 + $1.count }
        bytes.reserveCapacity(count + 256)
        bytes += Array("{\"jsonrpc\":\"2.0\",\"method\":".utf8) + JSON.string(method).bytes
        bytes += Array(",\"params\":".utf8)
        for piece in params { bytes += piece }
        // In the place of the closing brace; an object without members has two bytes.
        bytes.removeLast()
        bytes += Array((count > 2 ? ",\"id\":" : "\"id\":").utf8) + id.bytes + Array("}}".utf8)
        return bytes
    }

    /// The answer whose result is in its encoded form, in pieces.
    static func result(id: JSON, encoded result: [Bytes]) -> Bytes {
        var bytes: Bytes = []
        bytes.reserveCapacity(result.reduce(256) { $0 + $1.count })
        bytes += Array("{\"jsonrpc\":\"2.0\",\"id\":".utf8) + id.bytes + Array(",\"result\":".utf8)
        for piece in result { bytes += piece }
        bytes.append(UInt8(ascii: "}"))
        return bytes
    }

    static func result(id: JSON, _ result: JSON) -> Bytes {
        let object: JSON = ["jsonrpc": "2.0", "id": id, "result": result]
        return object.bytes
    }

    static func error(id: JSON, _ error: RPCError) -> Bytes {
        let object: JSON = ["jsonrpc": "2.0", "id": id, "error": error.json]
        return object.bytes
    }
}

extension MessagingLimits {
    /// Why a message may not be sent, if it may not: the other end would refuse it, and libzmq would close the
    /// connection.
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
