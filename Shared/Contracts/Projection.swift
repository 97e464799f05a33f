public import JSONValue
public import PhotoModel

/// A projection of the objects of a reply: the members that they have, and the form of their dates.
public struct Projection: Sendable, Hashable {
    /// The members of each object; nil for all of them.
    public var members: [String]?
    /// The form in which dates are written.
    public var dates: DateForm

    /// The maximum number of objects in a page of identifiers only: its reply has 3.6 MB.
    public static let maxIDs = 100_000

    public init(members: [String]? = nil, dates: DateForm = .microseconds) {
        self.members = members
        self.dates = dates
    }

    /// True if the objects have no other member than their identifier, so that they need not be read.
    public var isIDsOnly: Bool { members.map { Set($0) == ["id"] } ?? false }

    /// The same projection, for the text of assets.
    public var assets: AssetProjection { AssetProjection(members: members, datesAreText: dates == .rfc3339) }

    /// The members of a reply that hold objects.
    private static let lists: Set<String> = ["assets", "collections", "lists"]

    /// The names of the members that hold dates, from the tables of the objects.
    private static let dateNames = Set(
        names(Asset.table) + names(AssetCollection.table) + names(CollectionList.table)
            + names(QuarantinedResource.table)
    )

    private static func names<Object>(_ table: JSONTable<Object>) -> [String] {
        table.fields.filter { field in
            field.schema()["anyOf"]?.arrayValue?.contains { $0["format"] == "date-time" } == true
        }.map(\.name)
    }

    /// Returns a reply whose objects have this projection.
    public func applied(to reply: JSON) -> JSON {
        guard members != nil || dates != .microseconds, case .object(let object) = reply else { return reply }
        let names = members.map { Set($0) }
        return .object(
            JSONObject(
                distinct: object.members.map { name, value in
                    guard let objects = value.arrayValue else { return (name, value) }
                    let selected = Self.lists.contains(name) ? names : nil
                    return (name, .array(objects.map { projected($0, selected) }))
                }
            )
        )
    }

    private func projected(_ json: JSON, _ names: Set<String>?) -> JSON {
        guard case .object(let object) = json, names != nil || dates != .microseconds else { return json }
        var members: [(name: String, value: JSON)] = []
        for (name, value) in object.members where names?.contains(name) ?? true {
            guard dates == .rfc3339, Self.dateNames.contains(name), let date = value.intValue else {
                members.append((name, value))
                continue
            }
            members.append((name, .string(Timestamp.text(date))))
        }
        return .object(JSONObject(distinct: members))
    }
}

/// The form in which dates are written in a reply.
public enum DateForm: String, Sendable, CaseIterable {
    /// Microseconds since 1970-01-01T00:00:00Z.
    case microseconds
    /// RFC 3339 text in UTC, `2024-05-01T12:30:00Z`.
    case rfc3339
}

/// A request whose reply contains objects with a projection that the client chooses.
public protocol ProjectedRequest {
    /// The projection of the objects.
    var projection: Projection { get set }
}

extension JSONField where Root: ProjectedRequest {
    /// Returns the fields `members` and `dates` of a request.
    ///
    /// - Parameter names: the members that the objects have
    static func projection(_ names: [String]) -> [JSONField] {
        [
            .optional(
                "members",
                \Root.projection.members,
                .names(names),
                "Only these members of each object; with [\"id\"] alone a page has up to \(Projection.maxIDs) objects."
            ),
            .dates(\Root.projection.dates),
        ]
    }
}

extension JSONField {
    static func dates(_ path: Path<DateForm>) -> JSONField {
        .defaulted(
            "dates",
            path,
            .name(DateForm.self),
            "Dates of the objects as microseconds since 1970, or as RFC 3339 text in UTC.",
            default: .microseconds
        )
    }
}

extension JSONType where Value == [String] {
    /// Returns the type of a selection of names.
    static func names(_ known: [String]) -> JSONType {
        JSONType(
            schema: ["type": "array", "items": ["type": "string", "enum": JSON(known)], "uniqueItems": true],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let elements = json.arrayValue, !elements.isEmpty else {
                    throw JSONProblem("expected a list of names, such as [\"id\"]; absent: all members")
                }
                var names: [String] = []
                for element in elements {
                    guard let name = element.stringValue, known.contains(name) else {
                        throw JSONProblem(
                            "there is no member \(element.text.prefix(64)); known are \(known.joined(separator: ", "))"
                        )
                    }
                    if !names.contains(name) { names.append(name) }
                }
                return names
            },
            encode: { JSON($0) }
        )
    }
}
