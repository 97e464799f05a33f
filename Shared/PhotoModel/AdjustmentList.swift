public import JSONValue

/// Adjustment data in the editor's own format: an ordered list of operations.
///
/// As JSON: `{"version":1,"operations":[{"operation":"exposure","value":0.5}, …]}` (S-85, S-88).
public struct AdjustmentList: Sendable, Hashable {
    /// The identifier of the format in adjustment data.
    public static let formatIdentifier = "org.safelight.adjustments"
    /// The version of the format in adjustment data.
    public static let formatVersion = "1"
    /// The maximum number of operations in a list; longer lists are refused.
    public static let maximumCount = 64

    /// The operations in the order of the list.
    public var operations: [Adjustment]
    /// The engine that rendered the list, and its version; nil for the fused pass of version 1.
    ///
    /// It is part of the list so that a copy, a preset and an undo render the same result. Lists of the default engine
    /// have no such member, so that readers which do not know engines read them as before; they refuse other lists,
    /// because they could not render them.
    public var engine: AppliedEngine?

    /// True if the operations apply to a render that is not kept: that of another program's edit of a video (S-87).
    public var isOnRender = false

    /// Nil unless the list also applies to the video of a Live Photo (T-48).
    public var livePhoto: LivePhotoAdjustment?

    public init(
        operations: [Adjustment] = [],
        engine: AppliedEngine? = nil,
        isOnRender: Bool = false,
        livePhoto: LivePhotoAdjustment? = nil
    ) {
        self.operations = operations
        self.engine = engine
        self.isOnRender = isOnRender
        self.livePhoto = livePhoto
    }

    /// Decodes a list and checks every member against the tables of `AdjustmentKind`.
    ///
    /// - Throws: `AdjustmentError` with the operation, the member and the allowed values.
    public init(json: JSON) throws(AdjustmentError) {
        guard let object = json.objectValue else {
            throw AdjustmentError(.malformed, allowed: ["an object {\"version\":1,\"operations\":[…]}"])
        }
        let known = ["version", "engine", "base", "livePhoto", "operations"]
        for (name, _) in object.members where !known.contains(name) {
            throw AdjustmentError(.unknownMember, member: name, allowed: known)
        }
        guard object["version"]?.intValue == 1 else {
            throw AdjustmentError(.unknownVersion, member: "version", allowed: ["1"])
        }
        guard let elements = object["operations"]?.arrayValue else {
            throw AdjustmentError(.malformed, member: "operations", allowed: ["an array of operations"])
        }
        guard elements.count <= Self.maximumCount else {
            throw AdjustmentError(
                .tooManyOperations,
                member: "operations",
                allowed: ["at most \(Self.maximumCount) operations"]
            )
        }
        if let named = object["engine"] {
            guard let applied = AppliedEngine(json: named) else {
                throw AdjustmentError(
                    .outOfRange,
                    member: "engine",
                    found: String(named.text.prefix(64)),
                    allowed: ["{\"name\": \"fused\" or \"imagemagick\", \"version\": \"…\"}"]
                )
            }
            engine = applied == .defaultEngine ? nil : applied
        }
        if let base = object["base"] {
            guard base == "render" else {
                throw AdjustmentError(
                    .outOfRange,
                    member: "base",
                    found: String(base.text.prefix(64)),
                    allowed: ["\"render\""]
                )
            }
            isOnRender = true
        }
        livePhoto = try object["livePhoto"].map { json throws(AdjustmentError) in try LivePhotoAdjustment(json: json) }
        operations = []
        for (index, element) in elements.enumerated() {
            operations.append(try Self.operation(element, at: index))
        }
    }

    private static func operation(_ json: JSON, at index: Int) throws(AdjustmentError) -> Adjustment {
        guard let object = json.objectValue, let name = object["operation"]?.stringValue else {
            throw AdjustmentError(
                .malformed,
                index: index,
                member: "operation",
                allowed: AdjustmentKind.all.map(\.rawValue)
            )
        }
        guard let kind = AdjustmentKind(rawValue: name) else {
            throw AdjustmentError(
                .unknownOperation,
                index: index,
                member: "operation",
                found: name,
                allowed: AdjustmentKind.all.map(\.rawValue)
            )
        }
        return try Adjustment(kind, object, index: index)
    }

    /// The canonical JSON form: every member, in the order of the tables. Equal lists have equal bytes.
    public var json: JSON {
        var object: JSONObject = ["version": 1]
        if let engine { object["engine"] = engine.json }
        if isOnRender { object["base"] = "render" }
        if let livePhoto { object["livePhoto"] = livePhoto.json }
        object["operations"] = .array(operations.map(\.json))
        return .object(object)
    }

    /// True if the list changes nothing. Two flips that cancel each other count as a change.
    public var isNeutral: Bool { operations.allSatisfy(\.isNeutral) && livePhoto?.isNeutral != false }

    /// The JSON Schema (draft 2020-12) of the format, generated from the tables that parse it.
    ///
    /// `x-stages` lists the stages in the order in which they run; `x-forward` states the rule for readers that find
    /// unknown operations.
    public static var schema: JSON {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": .string("urn:\(formatIdentifier):\(formatVersion)"),
            "title": .string("\(formatIdentifier) \(formatVersion)"),
            "description": .string(
                "A list of operations on an image. Stages run in their order; within a stage, operations run in the "
                    + "order of the list."
            ),
            "x-stages": .array(
                AdjustmentKind.Stage.allCases.map { ["stage": .string($0.rawValue), "meaning": .string($0.meaning)] }
            ),
            "x-forward": .string(forwardRule),
            "type": "object", "required": ["version", "operations"], "additionalProperties": false,
            "properties": [
                "version": ["const": 1], "engine": AppliedEngine.schema,
                "base": [
                    "const": "render",
                    "description": .string(
                        "Present if the operations apply to another program's render of a video, which is not kept."
                    ),
                ],
                "livePhoto": LivePhotoAdjustment.schema,
                "operations": [
                    "type": "array", "maxItems": JSON(maximumCount),
                    "items": ["oneOf": .array(AdjustmentKind.all.map(\.json))],
                ],
            ],
        ]
    }

    /// The rule for readers that find members or operations they do not know.
    public static let forwardRule = """
        Operations and members may be added within a version; existing ones never change their meaning within it. A \
        reader that finds an operation, a member or a version that it does not know refuses the whole list and names \
        it, because omitting a step would give another image. The library stores such data byte for byte, and an \
        editor that cannot read it receives the current image instead of the base.
        """
}
