public import JSONValue

/// PhotoKit's `PHImageContentMode`: how an image is fitted to the target size (S-42).
public enum ImageContentMode: String, NumberedName {
    /// Inside the target size.
    case aspectFit
    /// Filling the target size.
    case aspectFill

    public var number: Int { self == .aspectFit ? 0 : 1 }
}

/// PhotoKit's `PHImageRequestOptionsResizeMode`: how closely the result must match the target size (S-43).
public enum ImageResizeMode: String, NumberedName {
    /// All pixels, whatever the target size.
    case none
    /// The target size if the source has that many pixels, else all pixels: never enlarged. With `aspectFill` the image
    /// covers the target and is not cropped.
    case fast
    /// Exactly the target size, enlarged if necessary.
    case exact

    public var number: Int {
        switch self {
        case .none: 0
        case .fast: 1
        case .exact: 2
        }
    }
}

/// PhotoKit's `PHImageRequestOptionsVersion`: the image with or without edits (S-49).
public enum ImageVersion: String, NumberedName {
    case current, unadjusted, original

    public var number: Int {
        switch self {
        case .current: 0
        case .unadjusted: 1
        case .original: 2
        }
    }
}

/// PhotoKit's `PHImageRequestOptionsDeliveryMode` (S-45).
public enum ImageDeliveryMode: String, NumberedName {
    case opportunistic, highQualityFormat, fastFormat

    public var number: Int {
        switch self {
        case .opportunistic: 0
        case .highQualityFormat: 1
        case .fastFormat: 2
        }
    }
}

/// The formats in which images are delivered.
public enum DeliveredFormat: String, Sendable, Hashable, CaseIterable {
    case jpeg, webp, png, avif
}

/// The target size: pixels, or all available ones (`PHImageManagerMaximumSize`).
public enum TargetSize: Sendable, Hashable {
    case maximum
    case size(width: Int, height: Int)

    /// The maximum side that a request may have, in pixels.
    public static let maxSide = 16_384
}

extension JSONType where Value == TargetSize {
    /// The type of a target size: `"max"` or `{"width", "height"}`.
    public static var targetSize: JSONType {
        let side = JSONType<Int>.count(1...TargetSize.maxSide)
        return JSONType(
            schema: [
                "anyOf": [
                    ["const": "max"],
                    [
                        "type": "object", "properties": ["width": side.schema(), "height": side.schema()],
                        "required": ["width", "height"],
                    ],
                ]
            ],
            decode: { (json: JSON) throws(JSONProblem) in
                if json.stringValue == "max" { return .maximum }
                guard let width = json["width"], let height = json["height"], json.objectValue?.count == 2 else {
                    throw JSONProblem("expected \"max\" or {\"width\", \"height\"}")
                }
                // Zero and negative numbers are decoded: the code that knows the other options refuses them.
                func pixels(_ json: JSON, _ name: String) throws(JSONProblem) -> Int {
                    guard let number = json.intValue.flatMap(Int.init(exactly:)), number <= TargetSize.maxSide else {
                        throw JSONProblem("expected a whole number from 1 to \(TargetSize.maxSide)", path: [name])
                    }
                    return number
                }
                return .size(width: try pixels(width, "width"), height: try pixels(height, "height"))
            },
            encode: { size in
                switch size {
                case .maximum: "max"
                case .size(let width, let height): ["width": JSON(width), "height": JSON(height)]
                }
            }
        )
    }
}
