import Basics
import JSONValue

/// Encodes the JSON frames of both sides.
enum EnvelopeWriter {
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
