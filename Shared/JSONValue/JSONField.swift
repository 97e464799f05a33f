/// One member of an object. A single declaration drives parsing, validation, encoding and documentation.
///
/// The functions are inlinable so that the module of a table compiles them for its types: generic code looks up the
/// metadata of its types on each use, which costs more than the member itself.
public struct JSONField<Root>: Sendable {
    /// The property that stores the member's value.
    public typealias Path<Value> = any WritableKeyPath<Root, Value> & Sendable

    /// The name of the member in JSON.
    public let name: String
    /// The description in the schema.
    public let summary: String
    /// True if the member must be present.
    public let isRequired: Bool
    /// The JSON Schema of the member's values.
    public let schema: @Sendable () -> JSON
    @usableFromInline let decode: @Sendable (JSON?, inout Root) throws(JSONProblem) -> Void
    @usableFromInline let encode: @Sendable (Root) -> JSON?

    @usableFromInline
    init(
        name: String,
        summary: String,
        isRequired: Bool,
        schema: @escaping @Sendable () -> JSON,
        decode: @escaping @Sendable (JSON?, inout Root) throws(JSONProblem) -> Void,
        encode: @escaping @Sendable (Root) -> JSON?
    ) {
        self.name = name
        self.summary = summary
        self.isRequired = isRequired
        self.schema = schema
        self.decode = decode
        self.encode = encode
    }

    /// Returns a member that must be present.
    @inlinable
    public static func required<Value>(
        _ name: String,
        _ path: Path<Value>,
        _ type: JSONType<Value>,
        _ summary: String
    ) -> JSONField {
        let property = JSONProperty(path)
        return JSONField(
            name: name,
            summary: summary,
            isRequired: true,
            schema: type.schema,
            decode: { (json: JSON?, root: inout Root) throws(JSONProblem) in
                guard let json else { throw JSONProblem("is required") }
                property.set(try type.decode(json), of: &root)
            },
            encode: { type.encode(property.value(of: $0)) }
        )
    }

    /// Returns a member that may be absent or null. Nil is not encoded.
    @inlinable
    public static func optional<Value>(
        _ name: String,
        _ path: Path<Value?>,
        _ type: JSONType<Value>,
        _ summary: String
    ) -> JSONField {
        let property = JSONProperty(path)
        return JSONField(
            name: name,
            summary: summary,
            isRequired: false,
            schema: type.schema,
            decode: { (json: JSON?, root: inout Root) throws(JSONProblem) in
                guard let json, !json.isNull else { return property.set(nil, of: &root) }
                property.set(try type.decode(json), of: &root)
            },
            encode: { property.value(of: $0).map(type.encode) }
        )
    }

    /// Returns a member of a patch that cannot be cleared: absent leaves the property unchanged, and null is refused.
    @inlinable
    public static func change<Value>(
        _ name: String,
        _ path: Path<Value?>,
        _ type: JSONType<Value>,
        _ summary: String
    ) -> JSONField {
        let property = JSONProperty(path)
        return JSONField(
            name: name,
            summary: summary,
            isRequired: false,
            schema: type.schema,
            decode: { (json: JSON?, root: inout Root) throws(JSONProblem) in
                guard let json else { return property.set(nil, of: &root) }
                property.set(try type.decode(json), of: &root)
            },
            encode: { property.value(of: $0).map(type.encode) }
        )
    }

    /// Returns a member of a patch: absent leaves the property unchanged, null clears it.
    @inlinable
    public static func patch<Value>(
        _ name: String,
        _ path: Path<Value??>,
        _ type: JSONType<Value>,
        _ summary: String
    ) -> JSONField {
        let property = JSONProperty(path)
        return JSONField(
            name: name,
            summary: summary,
            isRequired: false,
            schema: { ["anyOf": [type.schema(), ["type": "null"]]] },
            decode: { (json: JSON?, root: inout Root) throws(JSONProblem) in
                guard let json else { return property.set(.none, of: &root) }
                property.set(json.isNull ? .some(nil) : .some(try type.decode(json)), of: &root)
            },
            encode: { root in property.value(of: root).map { $0.map(type.encode) ?? .null } }
        )
    }

    /// Returns a member with a default value. `isWritten` is true if the default is encoded too.
    @inlinable
    public static func defaulted<Value: Equatable & Sendable>(
        _ name: String,
        _ path: Path<Value>,
        _ type: JSONType<Value>,
        _ summary: String,
        default value: Value,
        isWritten: Bool = false
    ) -> JSONField {
        let property = JSONProperty(path)
        return JSONField(
            name: name,
            summary: summary,
            isRequired: false,
            schema: {
                guard case .object(var schema) = type.schema() else { return type.schema() }
                schema["default"] = type.encode(value)
                return .object(schema)
            },
            decode: { (json: JSON?, root: inout Root) throws(JSONProblem) in
                guard let json, !json.isNull else { return property.set(value, of: &root) }
                property.set(try type.decode(json), of: &root)
            },
            encode: { root in
                let current = property.value(of: root)
                // A plain `nil` would be `JSON.null` here, which is a value.
                guard isWritten || current != value else { return Optional.none }
                return type.encode(current)
            }
        )
    }

    /// Returns a member that follows from the other properties: encoded unless nil, and ignored when it is read.
    @inlinable
    public static func derived<Value>(
        _ name: String,
        _ value: @escaping @Sendable (Root) -> Value?,
        _ type: JSONType<Value>,
        _ summary: String
    ) -> JSONField {
        JSONField(
            name: name,
            summary: summary,
            isRequired: false,
            schema: type.schema,
            decode: { (_, _) throws(JSONProblem) in },
            encode: { value($0).map(type.encode) }
        )
    }
}

/// A property of a value, accessed directly at its memory offset if it is a stored one.
///
/// Access by key path costs many times as much, and one record has about ninety properties.
@usableFromInline
struct JSONProperty<Root, Value>: Sendable {
    @usableFromInline let path: any WritableKeyPath<Root, Value> & Sendable
    @usableFromInline let offset: Int?

    @inlinable
    init(_ path: any WritableKeyPath<Root, Value> & Sendable) {
        self.path = path
        // Nil for computed and observed properties.
        offset = MemoryLayout<Root>.offset(of: path)
    }

    @inlinable
    func value(of root: Root) -> Value {
        guard let offset else { return root[keyPath: path] }
        return withUnsafeBytes(of: root) { $0.load(fromByteOffset: offset, as: Value.self) }
    }

    @inlinable
    func set(_ value: Value, of root: inout Root) {
        guard let offset else { return root[keyPath: path] = value }
        withUnsafeMutableBytes(of: &root) { bytes in
            guard let start = bytes.baseAddress else { return }
            (start + offset).assumingMemoryBound(to: Value.self).pointee = value
        }
    }
}
