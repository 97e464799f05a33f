import JSONValue

/// The engine and version that rendered an edit. The same list, engine and version give the same bytes.
public struct AppliedEngine: Sendable, Hashable {
    /// The engine.
    public var engine: RenderEngine
    /// The version of the engine, for ImageMagick that of the library, such as "6.9.11-60".
    public var version: String

    public init(_ engine: RenderEngine, version: String) {
        self.engine = engine
        self.version = version
    }

    /// The engine of a list that names none: the fused pass of version 1.
    public static let defaultEngine = AppliedEngine(.fused, version: "1")

    static let maxVersionBytes = 64

    init?(json: JSON) {
        guard let object = json.objectValue, object.members.count == 2,
            let engine = object["name"]?.stringValue.flatMap(RenderEngine.init(rawValue:)),
            let version = object["version"]?.stringValue, (1...Self.maxVersionBytes).contains(version.utf8.count)
        else { return nil }
        self.init(engine, version: version)
    }

    var json: JSON { ["name": .string(engine.rawValue), "version": .string(version)] }

    /// The JSON Schema of the member `engine` of a list.
    static let schema: JSON = [
        "description": .string(
            "The engine that rendered the list, and its version; absent for the fused pass of version 1. The same "
                + "list, engine and version give the same bytes."
        ),
        "type": "object", "required": ["name", "version"], "additionalProperties": false,
        "properties": [
            "name": ["enum": .array(RenderEngine.allCases.map { .string($0.rawValue) })],
            "version": ["type": "string", "minLength": 1, "maxLength": JSON(maxVersionBytes)],
        ],
    ]
}
