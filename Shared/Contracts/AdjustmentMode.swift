import JSONValue
import PhotoModel

/// The way a list of adjustments is combined with the present list: replacing it, or appended to it.
public enum AdjustmentMode: String, Sendable, CaseIterable {
    case replace, append
}

extension JSONType where Value == MagickOptions {
    /// Options of ImageMagick's `convert`, read by ``MagickOptions``.
    static var magick: JSONType {
        JSONType(
            schema: ["type": "string", "maxLength": JSON(MagickOptions.maxBytes)],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue else { throw JSONProblem("expected text") }
                do throws(MagickOptionError) { return try MagickOptions(text) } catch {
                    throw JSONProblem(error.description)
                }
            },
            encode: { .string($0.text) }
        )
    }
}

extension JSONType where Value == AdjustmentList {
    /// The editor's list of operations, validated against its operation tables.
    static var adjustments: JSONType {
        JSONType(
            schema: AdjustmentList.schema,
            decode: { (json: JSON) throws(JSONProblem) in
                do throws(AdjustmentError) {
                    return try AdjustmentList(json: json)
                } catch {
                    throw JSONProblem(error.description)
                }
            },
            encode: { $0.json }
        )
    }
}
