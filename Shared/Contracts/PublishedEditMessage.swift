public import Basics
public import JSONValue
public import PhotoModel

/// A decoded message to the edits endpoint.
public enum PublishedEditMessage: Sendable {
    /// An edit, with its parameters as received.
    case edit(PublishEdit, params: JSON)
    /// A malformed edit that has an id and an asset; it is recorded as failed.
    case malformed(MalformedEdit)
    /// A message without a valid id and asset; its publisher cannot be informed.
    case unreadable(RPCError)

    /// A malformed edit whose error can be recorded for its publisher.
    public struct MalformedEdit: Sendable {
        /// Id of the edit.
        public let id: String
        /// The asset.
        public let asset: ObjectID
        /// Id of the edit that this one was to be applied after; nil if it names none.
        public let predecessor: String?
        /// The parameters as received.
        public let params: JSON
        /// The reason why it cannot be applied.
        public let error: RPCError
    }

    /// Decodes the frames of a message.
    public init(frames: [Bytes], limits: JSONLimits = JSONLimits()) {
        guard let frame = frames.first else {
            self = .unreadable(.invalidRequest("the message has no frame"))
            return
        }
        let json: JSON
        do throws(JSONError) { json = try JSON(parsing: frame, limits: limits) } catch {
            self = .unreadable(.parseError("the first frame is not JSON: \(error)"))
            return
        }
        let params = json["params"] ?? .null
        do throws(RPCError) {
            try Self.checkEnvelope(json, frames, params)
            do throws(JSONProblem) {
                self = .edit(try PublishEdit.read(params), params: params)
            } catch {
                throw ErrorCode.invalidParams.error("\(PublishEdit.method): \(error.description)")
            }
        } catch {
            self = Self.malformed(params, error)
        }
    }

    private static func checkEnvelope(_ json: JSON, _ frames: [Bytes], _ params: JSON) throws(RPCError) {
        guard json["jsonrpc"]?.stringValue == "2.0", json["id"] == nil,
            json["method"]?.stringValue == PublishEdit.method
        else {
            throw .invalidRequest(
                "an edit is a notification: {\"jsonrpc\": \"2.0\", \"method\": \"\(PublishEdit.method)\", \"params\": {…}}"
            )
        }
        let allowed = ["jsonrpc", "method", "params"]
        if let other = json.objectValue?.members.first(where: { !allowed.contains($0.name) })?.name {
            throw .invalidRequest(
                "an edit has the members jsonrpc, method and params; \(other.prefix(64)) belongs inside params"
            )
        }
        guard frames.count == 1 else { throw .invalidRequest("an edit has one frame, not \(frames.count)") }
        let bytes = params.bytes.count
        guard bytes <= ChangeRequest.AcceptEdit.maxContentBytes else {
            throw ErrorCode.limitExceeded.error(
                "an edit has at most \(ChangeRequest.AcceptEdit.maxContentBytes) bytes, this one has \(bytes)"
            )
        }
    }

    private static func malformed(_ params: JSON, _ error: RPCError) -> PublishedEditMessage {
        guard let name = params["id"], let id = try? JSONType.publishedEditID.decode(name),
            let asset = params["asset"]?.stringValue.flatMap({ ObjectID($0) }), asset.kind == .asset
        else { return .unreadable(error) }
        let predecessor = params["after"].flatMap { try? JSONType.publishedEditID.decode($0) }
        return .malformed(MalformedEdit(id: id, asset: asset, predecessor: predecessor, params: params, error: error))
    }
}
