public import JSONValue

/// The operations of version 1 of Safelight's own adjustment format.
///
/// Each operation is declared once, in ``definition``. That table drives parsing, validation and documentation.
public enum AdjustmentKind: String, Sendable, Hashable, CaseIterable {
    case crop, straighten, rotate, flip, perspective, resize
    case noiseReduction
    case exposure, brightness, contrast, highlights, shadows, whites, blacks, levels, curve
    case temperature, tint, saturation, vibrance, hsl, modulate, blackAndWhite, blackAndWhiteMix, sepia, toning,
        splitToning,
        lut
    case clarity, sharpen
    case blur, motionBlur, radialBlur, adaptiveSharpen, median, despeckle, posterize, solarize, charcoal, oilPaint,
        emboss
    case edge, swirl, implode, normalize, equalize, contrastStretch, colorize, colourTint
    case unsharpMask, sketch, wave, liquidRescale, trim, deskew
    case vignette, grain
    case textWatermark, pictureWatermark
    case border, frame, roundedCorners, polaroid, shadow
    case timeRange, speed, volume

    /// All operations in documentation order.
    public static var all: [AdjustmentKind] { allCases }

    /// The stages of rendering. Stages run in this order, whatever the order of the list; within a stage, operations
    /// run in the order of the list.
    public enum Stage: String, Sendable, Hashable, CaseIterable {
        /// Moves pixels. All operations are composed into one resampling, or into none if only whole pixels move.
        case geometry
        /// Reduces noise before colours are changed.
        case cleaning
        /// Recolours each pixel independently. All operations are composed into one pass.
        case colour
        /// Reads neighbouring pixels of the recoloured image.
        case detail
        /// Changes the image by ImageMagick's effects, one after another.
        case effect
        /// Depends on the position in the finished frame.
        case finish
        /// Draws over the finished image.
        case overlay
        /// Changes the edges of the finished image, or adds to it on all sides.
        case frame
        /// Chooses the part of a video, its speed and its sound. Photos have no such operations.
        case video = "film"

        /// A description of the stage for the schema.
        public var meaning: String {
            switch self {
            case .geometry: "Moves pixels; composed into one resampling, or into none if only whole pixels move."
            case .cleaning: "Reduces noise before colours are changed."
            case .colour: "Recolours each pixel independently; composed into one pass."
            case .detail: "Reads neighbouring pixels of the recoloured image."
            case .effect: "Changes the image by ImageMagick's effects, one after another."
            case .finish: "Depends on the position in the finished frame."
            case .overlay: "Draws over the finished image."
            case .frame: "Changes the edges of the finished image, or adds to it on all sides."
            case .video: "Chooses the part of a video, its speed and its sound; photos have no such operations."
            }
        }
    }

    /// The stage in which the operation runs.
    public var stage: Stage { definition.stage }

    /// A description of the operation in one or two sentences.
    public var meaning: String { definition.meaning }

    /// The members that the operation has besides "operation". A missing member has its default value.
    public var parameters: [AdjustmentParameter] { definition.parameters }

    /// True if the operation moves pixels and does not recolour them.
    public var isGeometric: Bool { stage == .geometry }

    /// True if the result may have another size than the image before it.
    public var changesSize: Bool {
        switch self {
        case .wave, .liquidRescale, .trim, .deskew, .border, .frame, .polaroid, .shadow: true
        default: isGeometric
        }
    }

    /// The JSON Schema of the operation: name, description, stage and a schema for each member.
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

/// The complete definition of an operation.
struct AdjustmentDefinition: Sendable {
    let stage: AdjustmentKind.Stage
    let meaning: String
    let parameters: [AdjustmentParameter]
}

extension AdjustmentKind {
    var definition: AdjustmentDefinition { Self.definitions[self] ?? Self.emptyDefinition }

    private static let emptyDefinition = AdjustmentDefinition(stage: .colour, meaning: "", parameters: [])

    /// Built once. The definitions are in the files of the stages.
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
        case .temperature, .tint, .saturation, .vibrance, .hsl, .modulate, .blackAndWhite, .blackAndWhiteMix, .sepia,
            .toning, .splitToning, .lut:
            stage = .colour
            (meaning, parameters) = declaredColour
        case .noiseReduction:
            stage = .cleaning
            (meaning, parameters) = declaredDetail
        case .clarity, .sharpen:
            stage = .detail
            (meaning, parameters) = declaredDetail
        case .blur, .motionBlur, .radialBlur, .adaptiveSharpen, .median, .despeckle, .posterize, .solarize, .charcoal,
            .oilPaint, .emboss, .edge, .swirl, .implode, .normalize, .equalize, .contrastStretch, .colorize,
            .colourTint, .unsharpMask, .sketch, .wave, .liquidRescale, .trim, .deskew:
            stage = .effect
            (meaning, parameters) = declaredEffect
        case .border, .frame, .roundedCorners, .polaroid, .shadow:
            stage = .frame
            (meaning, parameters) = declaredFrame
        case .timeRange, .speed, .volume:
            stage = .video
            (meaning, parameters) = declaredVideo
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
