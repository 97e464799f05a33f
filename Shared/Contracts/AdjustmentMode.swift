import JSONValue
import PhotoModel

/// The way a list of adjustments is combined with the current list: replacing it, or appended to it.
public enum AdjustmentMode: String, Sendable, CaseIterable {
    case replace, append
}

extension JSONType where Value == MagickOptions {
    /// The type of options of ImageMagick's `convert`, which ``MagickOptions`` parses.
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
    /// The type of the editor's list of operations, which is checked against the tables of the operations.
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
