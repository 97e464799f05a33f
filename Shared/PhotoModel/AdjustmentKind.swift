public import JSONValue

/// The operations of version 1 of Safelight's own adjustment format.
///
/// Each is declared once, in ``definition``: that table parses, validates and documents.
public enum AdjustmentKind: String, Sendable, Hashable, CaseIterable {
    case crop, straighten, rotate, flip, perspective, resize
    case noiseReduction
    case exposure, brightness, contrast, highlights, shadows, whites, blacks, levels, curve
    case temperature, tint, saturation, vibrance, hsl, blackAndWhite, blackAndWhiteMix, sepia, toning, splitToning
    case clarity, sharpen
    case vignette, grain
    case textWatermark, pictureWatermark

    /// All operations in the order in which they are documented.
    public static var all: [AdjustmentKind] { allCases }

    /// What happens when: the stages are run in this order, whatever the order of the list; within a stage the
    /// operations run in the order of the list.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// Moves pixels: composed into one resampling, or into none where whole pixels move.
        case geometry
        /// Takes noise out of the pixels as they came.
        case cleaning
        /// Recolours each pixel by itself: composed into one pass.
        case colour
        /// Looks at neighbours, on the recoloured picture.
        case detail
        /// Depends on the place in the finished frame.
        case finish
        /// Lies over the finished picture.
        case overlay

        /// What the stage does, for the documents.
        public var meaning: String {
            switch self {
            case .geometry: "Moves pixels; all of them together are one resampling, or none where whole pixels move."
            case .cleaning: "Takes noise out of the pixels as they came from the camera."
            case .colour: "Recolours each pixel by itself; all of them together are one pass."
            case .detail: "Looks at neighbouring pixels of the recoloured picture."
            case .finish: "Depends on the place in the finished frame."
            case .overlay: "Lies over the finished picture."
            }
        }
    }

    /// When the operation runs.
    public var stage: Stage { definition.stage }

    /// What the operation does, in one or two sentences.
    public var meaning: String { definition.meaning }

    /// The members that the operation takes beside "operation".
    ///
    /// A missing member has its default.
    public var parameters: [AdjustmentParameter] { definition.parameters }

    /// Whether the operation moves pixels rather than recolours them.
    public var isGeometric: Bool { stage == .geometry }

    /// The operation's JSON Schema: its name, its meaning, its stage, and a schema for each member.
    public var json: JSON {
        var properties: JSONObject = ["operation": ["const": .string(rawValue)]]
        for parameter in parameters { properties[parameter.name] = parameter.json }
        return [
            "title": .string(rawValue), "description": .string(meaning), "x-stage": .string(stage.rawValue),
            "type": "object", "required": ["operation"], "properties": .object(properties),
            "additionalProperties": false,
        ]
    }
}

/// Everything that is to be said about an operation.
struct AdjustmentDefinition: Sendable {
    let stage: AdjustmentKind.Stage
    let meaning: String
    let parameters: [AdjustmentParameter]
}

extension AdjustmentKind {
    var definition: AdjustmentDefinition { Self.definitions[self] ?? Self.nothing }

    private static let nothing = AdjustmentDefinition(stage: .colour, meaning: "", parameters: [])

    /// Made once; each kind's own line is in the files of its stages.
    private static let definitions: [AdjustmentKind: AdjustmentDefinition] = Dictionary(
        uniqueKeysWithValues: allCases.map { ($0, $0.declared) }
    )

    private var declared: AdjustmentDefinition {
        let (meaning, parameters): (String, [AdjustmentParameter])
        let stage: Stage
        switch self {
        case .crop, .straighten, .rotate, .flip, .perspective, .resize:
            stage = .geometry
            (meaning, parameters) = declaredGeometry
        case .exposure, .brightness, .contrast, .highlights, .shadows, .whites, .blacks, .levels, .curve:
            stage = .colour
            (meaning, parameters) = declaredTone
        case .temperature, .tint, .saturation, .vibrance, .hsl, .blackAndWhite, .blackAndWhiteMix, .sepia, .toning,
            .splitToning:
            stage = .colour
            (meaning, parameters) = declaredColour
        case .noiseReduction:
            stage = .cleaning
            (meaning, parameters) = declaredDetail
        case .clarity, .sharpen:
            stage = .detail
            (meaning, parameters) = declaredDetail
        case .vignette, .grain:
            stage = .finish
            (meaning, parameters) = declaredDetail
        case .textWatermark, .pictureWatermark:
            stage = .overlay
            (meaning, parameters) = declaredDetail
        }
        return AdjustmentDefinition(stage: stage, meaning: meaning, parameters: parameters)
    }
}
