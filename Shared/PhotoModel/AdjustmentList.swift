public import JSONValue

/// The editor's own adjustment data: an ordered list of operations.
///
/// As JSON: `{"version":1,"operations":[{"operation":"exposure","value":0.5}, …]}`. Sources: rows S-85 and S-88.
public struct AdjustmentList: Sendable, Hashable {
    /// The format's identifier in adjustment data.
    public static let formatIdentifier = "org.safelight.adjustments"
    /// The format's version in adjustment data.
    public static let formatVersion = "1"
    /// More operations than this are refused.
    public static let maximumCount = 64

    /// The operations in the order in which they apply.
    public var operations: [Adjustment]

    public init(operations: [Adjustment] = []) {
        self.operations = operations
    }

    /// Reads a list and checks every member against the tables of `AdjustmentKind`.
    ///
    /// - Throws: `AdjustmentError`, which names operation, member and what is allowed.
    public init(json: JSON) throws(AdjustmentError) {
        guard let object = json.objectValue else {
            throw AdjustmentError(.malformed, allowed: ["an object {\"version\":1,\"operations\":[…]}"])
        }
        for (name, _) in object.members where name != "version" && name != "operations" {
            throw AdjustmentError(.unknownMember, member: name, allowed: ["version", "operations"])
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

    /// The canonical JSON: every member written out, in the order of the tables.
    ///
    /// Equal lists have equal bytes.
    public var json: JSON {
        ["version": 1, "operations": .array(operations.map(\.json))]
    }

    /// Whether the list changes nothing.
    ///
    /// Two flips that cancel count as a change.
    public var isNeutral: Bool { operations.allSatisfy(\.isNeutral) }

    /// The JSON Schema (draft 2020-12) of the format, made from the same tables that parse it.
    ///
    /// `x-stages` lists the stages in the order in which they run, `x-forward` says what a reader does with operations
    /// that it does not know.
    public static var schema: JSON {
        [
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "$id": .string("urn:\(formatIdentifier):\(formatVersion)"),
            "title": .string("\(formatIdentifier) \(formatVersion)"),
            "description": .string(
                "A list of operations on a picture. Stages run in their order; within a stage, operations run in the "
                    + "order of the list."
            ),
            "x-stages": .array(
                AdjustmentKind.Stage.allCases.map { ["stage": .string($0.rawValue), "meaning": .string($0.meaning)] }
            ),
            "x-forward": .string(forwardRule),
            "type": "object", "required": ["version", "operations"], "additionalProperties": false,
            "properties": [
                "version": ["const": 1],
                "operations": [
                    "type": "array", "maxItems": JSON(maximumCount),
                    "items": ["oneOf": .array(AdjustmentKind.all.map(\.json))],
                ],
            ],
        ]
    }

    /// What a reader does with what it does not know.
    public static let forwardRule = """
        Operations and members may be added within a version; the meaning of what is there never changes within it. A \
        reader that meets an operation, a member or a version that it does not know refuses the whole list and names \
        it: a step that is left out would make another picture. The library keeps such data byte for byte, and an \
        editor that cannot read it is given the current picture instead of its base.
        """
}

/// Why JSON is not an adjustment list of version 1.
public struct AdjustmentError: Error, Sendable, Hashable, CustomStringConvertible {
    public enum Reason: String, Sendable, Hashable {
        case malformed = "is missing or has the wrong shape"
        case unknownVersion = "is not a version that is known"
        case unknownOperation = "is not an operation"
        case unknownMember = "is not a known member"
        case outOfRange = "is out of range"
        case tooManyOperations = "holds too many operations"
    }

    public let reason: Reason
    /// Which operation, from 0; `nil` where the fault lies in the list around them.
    public let index: Int?
    /// Which member.
    public let member: String?
    /// What stood there.
    public let found: String?
    /// What is allowed there.
    public let allowed: [String]

    init(_ reason: Reason, index: Int? = nil, member: String? = nil, found: String? = nil, allowed: [String]) {
        self.reason = reason
        self.index = index
        self.member = member
        self.found = found
        self.allowed = allowed
    }

    public var description: String {
        let place = index.map { "operation \($0): " } ?? "adjustments: "
        let subject = (member.map { "\"\($0)\"" } ?? "the value") + (found.map { " (\($0))" } ?? "")
        return "\(place)\(subject) \(reason.rawValue); allowed: \(allowed.joined(separator: ", "))"
    }
}
