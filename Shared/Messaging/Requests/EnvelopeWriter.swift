import Basics
import JSONValue

/// Encodes the JSON frames of both sides.
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

    /// Encodes a notification whose params are an already encoded object, in pieces; a member `id` is added to it.
    static func notification(method: String, encoded params: [Bytes], id: JSON) -> Bytes {
        var bytes: Bytes = []
        let count = params.reduce(0) { $0 + $1.count }
        bytes.reserveCapacity(count + 256)
        bytes += Array("{\"jsonrpc\":\"2.0\",\"method\":".utf8) + JSON.string(method).bytes
        bytes += Array(",\"params\":".utf8)
        for piece in params { bytes += piece }
        // Replace the closing brace; an empty object has two bytes and needs no comma.
        bytes.removeLast()
        bytes += Array((count > 2 ? ",\"id\":" : "\"id\":").utf8) + id.bytes + Array("}}".utf8)
        return bytes
    }

    /// Encodes a response whose result is already encoded, in pieces.
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
