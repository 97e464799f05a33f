/// An error in a value. `path` lists member names and indexes from the outside in.
public struct JSONProblem: Error, Sendable, Equatable, CustomStringConvertible {
    /// Member names and indexes from the outside in; empty for the value itself.
    public var path: [String]
    /// The reason, and the accepted values if they can be listed.
    public let reason: String

    public init(_ reason: String, path: [String] = []) {
        self.path = path
        self.reason = reason
    }

    public var description: String {
        path.isEmpty ? reason : "\(path.joined(separator: ".")): \(reason)"
    }

    /// Returns the error with the name of the enclosing member, or its index, in front of the path.
    public func inside(_ name: String) -> JSONProblem { JSONProblem(reason, path: [name] + path) }
}

/// The JSON form of a type: schema, decoder and encoder, declared together so that they agree.
public struct JSONType<Value>: Sendable {
    /// The JSON Schema (draft 2020-12) of the accepted values.
    public let schema: @Sendable () -> JSON
    /// Decodes a value; throws if it is not accepted.
    public let decode: @Sendable (JSON) throws(JSONProblem) -> Value
    /// Encodes a value.
    public let encode: @Sendable (Value) -> JSON

    public init(
        schema: @escaping @Sendable @autoclosure () -> JSON,
        decode: @escaping @Sendable (JSON) throws(JSONProblem) -> Value,
        encode: @escaping @Sendable (Value) -> JSON
    ) {
        self.schema = schema
        self.decode = decode
        self.encode = encode
    }
}

/// The members of an object type.
public struct JSONTable<Root: Sendable>: Sendable {
    /// The treatment of members that the table does not declare.
    public enum Unknown: Sendable {
        /// For requests: a misspelt option must not silently become the default.
        case refused
        /// For results and records: a newer service may add members.
        case ignored
    }

    /// The title in the schema.
    public let name: String
    /// The description in the schema.
    public let summary: String
    /// The members in the order in which they are encoded.
    public let fields: [JSONField<Root>]
    /// The treatment of undeclared members.
    public let unknown: Unknown
    /// The value to which decoding adds the members.
    @usableFromInline let blank: Root
    private let names: Set<String>
    /// True if several fields have the same name; the number of known members then does not show that all are declared.
    @usableFromInline let hasRepeatedNames: Bool

    public init(
        _ name: String,
        _ summary: String,
        unknown: Unknown,
        blank: Root,
        _ fields: [JSONField<Root>]
    ) {
        self.name = name
        self.summary = summary
        self.fields = fields
        self.unknown = unknown
        self.blank = blank
        self.names = Set(fields.map(\.name))
        self.hasRepeatedNames = names.count != fields.count
    }

    /// Decodes an object.
    @inlinable
    public func decode(_ json: JSON) throws(JSONProblem) -> Root {
        guard case .object(let object) = json else { throw JSONProblem("expected an object") }
        var root = blank
        var known = 0
        // By index: a copy of a field counts references to its text and all of its functions.
        for index in 0..<fields.count {
            let member = object[fields[index].name]
            if member != nil { known += 1 }
            do throws(JSONProblem) {
                try fields[index].decode(member, &root)
            } catch {
                // A misspelt option is reported before one that is missing because of it.
                try checkNames(of: object)
                throw error.inside(fields[index].name)
            }
        }
        if known != object.count || hasRepeatedNames { try checkNames(of: object) }
        return root
    }

    /// Throws an error with the first undeclared member, if undeclared members are refused.
    @usableFromInline
    func checkNames(of object: JSONObject) throws(JSONProblem) {
        guard case .refused = unknown, let member = object.members.first(where: { !names.contains($0.name) }) else {
            return
        }
        let allowed = fields.map(\.name).joined(separator: ", ")
        throw JSONProblem("is unknown; allowed: \(allowed.isEmpty ? "nothing" : allowed)", path: [member.name])
    }

    /// Encodes a value as an object.
    @inlinable
    public func encode(_ root: Root) -> JSONObject {
        var members: [(name: String, value: JSON)] = []
        members.reserveCapacity(fields.count)
        for index in 0..<fields.count {
            if let value = fields[index].encode(root) { members.append((fields[index].name, value)) }
        }
        return JSONObject(distinct: members)
    }

    /// The JSON Schema of the object.
    public var schema: JSON {
        var properties = JSONObject()
        for field in fields {
            var schema = field.schema().objectValue ?? [:]
            schema["description"] = .string(field.summary)
            properties[field.name] = .object(schema)
        }
        var schema: JSONObject = [
            "type": "object", "title": .string(name), "description": .string(summary),
            "properties": .object(properties),
        ]
        let required = fields.filter(\.isRequired).map(\.name)
        if !required.isEmpty { schema["required"] = JSON(required) }
        if case .refused = unknown { schema["additionalProperties"] = false }
        return .object(schema)
    }
}

/// A type whose JSON object is described by a table.
public protocol JSONTabled: Sendable {
    /// The table of the object's members.
    static var table: JSONTable<Self> { get }
    /// Decodes a value; by default using its table.
    init(json: JSON) throws(JSONProblem)
    /// The value as JSON; by default encoded using its table.
    var json: JSON { get }
}

extension JSONTabled {
    @inlinable
    public init(json: JSON) throws(JSONProblem) { self = try Self.table.decode(json) }
    @inlinable public var json: JSON { .object(Self.table.encode(self)) }
}

// MARK: - Common types

extension JSONType where Value: JSONTabled {
    /// Returns the type of an object with its own table.
    @inlinable
    public static func object(_: Value.Type) -> JSONType {
        JSONType(
            schema: Value.table.schema,
            decode: { (json: JSON) throws(JSONProblem) in try Value.table.decode(json) },
            encode: { .object(Value.table.encode($0)) }
        )
    }
}

extension JSONType where Value: RawRepresentable & CaseIterable & Sendable, Value.RawValue == String {
    /// Returns the type of the names of an enumeration.
    @inlinable
    public static func name(_: Value.Type) -> JSONType {
        let names = Value.allCases.map(\.rawValue)
        return JSONType(
            schema: ["type": "string", "enum": JSON(names)],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue, let value = Value(rawValue: text) else {
                    throw JSONProblem("expected one of \(names.joined(separator: ", "))")
                }
                return value
            },
            encode: { .string($0.rawValue) }
        )
    }
}

extension JSONType where Value == String {
    /// Returns the type of text with a maximum length in UTF-8 bytes.
    public static func text(maxBytes: Int) -> JSONType {
        JSONType(
            schema: ["type": "string", "maxLength": JSON(maxBytes)],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue else { throw JSONProblem("expected text") }
                guard text.utf8.count <= maxBytes else {
                    throw JSONProblem("longer than \(maxBytes) bytes: \(text.utf8.count)")
                }
                return text
            },
            encode: { .string($0) }
        )
    }
}

extension JSONType where Value == String {
    /// Returns the type of text that is not empty, with a maximum length in UTF-8 bytes.
    public static func name(maxBytes: Int) -> JSONType {
        let text = text(maxBytes: maxBytes)
        return JSONType(
            schema: ["type": "string", "minLength": 1, "maxLength": JSON(maxBytes)],
            decode: { (json: JSON) throws(JSONProblem) in
                let value = try text.decode(json)
                guard !value.isEmpty else { throw JSONProblem("must not be empty") }
                return value
            },
            encode: text.encode
        )
    }
}

extension JSONType where Value: FixedWidthInteger & Sendable {
    /// Returns the type of a whole number within a range.
    @inlinable
    static func whole(_ range: ClosedRange<Value>) -> JSONType {
        JSONType(
            schema: [
                "type": "integer", "minimum": .int(Int64(clamping: range.lowerBound)),
                "maximum": .int(Int64(clamping: range.upperBound)),
            ],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let number = json.intValue.flatMap(Value.init(exactly:)), range.contains(number) else {
                    throw JSONProblem("expected a whole number from \(range.lowerBound) to \(range.upperBound)")
                }
                return number
            },
            encode: { .int(Int64(clamping: $0)) }
        )
    }
}

extension JSONType where Value == Int64 {
    /// Returns the type of a 64-bit integer within a range.
    @inlinable
    public static func integer(_ range: ClosedRange<Int64> = Int64.min...Int64.max) -> JSONType { whole(range) }
}

extension JSONType where Value == Int {
    /// Returns the type of a whole number within a range.
    @inlinable
    public static func count(_ range: ClosedRange<Int>) -> JSONType { whole(range) }
}

extension JSONType where Value == Double {
    /// Returns the type of a number within a range.
    public static func number(_ range: ClosedRange<Double>) -> JSONType {
        JSONType(
            schema: ["type": "number", "minimum": .double(range.lowerBound), "maximum": .double(range.upperBound)],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let number = json.doubleValue, range.contains(number) else {
                    throw JSONProblem("expected a number from \(range.lowerBound) to \(range.upperBound)")
                }
                return number
            },
            encode: { .double($0) }
        )
    }
}

extension JSONType where Value == Bool {
    /// The type of true and false.
    public static var flag: JSONType {
        JSONType(
            schema: ["type": "boolean"],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let flag = json.boolValue else { throw JSONProblem("expected true or false") }
                return flag
            },
            encode: { .bool($0) }
        )
    }
}

extension JSONType where Value == JSON {
    /// The type of any value, which other code interprets.
    public static var any: JSONType {
        JSONType(schema: [:], decode: { (json: JSON) throws(JSONProblem) in json }, encode: { $0 })
    }
}

extension JSONType {
    /// Returns the type of an array of at most `limit` values.
    @inlinable
    public static func list<Element: Sendable>(of element: JSONType<Element>, limit: Int) -> JSONType
    where Value == [Element] {
        JSONType(
            schema: ["type": "array", "items": element.schema(), "maxItems": JSON(limit)],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let elements = json.arrayValue else { throw JSONProblem("expected a list") }
                guard elements.count <= limit else {
                    throw JSONProblem("more than \(limit) elements: \(elements.count); use several requests")
                }
                var values: [Element] = []
                values.reserveCapacity(elements.count)
                for (index, json) in elements.enumerated() {
                    do throws(JSONProblem) {
                        values.append(try element.decode(json))
                    } catch {
                        throw error.inside(String(index))
                    }
                }
                return values
            },
            encode: { .array($0.map(element.encode)) }
        )
    }
}
