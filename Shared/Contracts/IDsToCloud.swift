public import JSONValue
public import PhotoModel

/// `ids.toCloud`: the identifiers that assets and collections have in every copy of the library:
/// `cloudIdentifierMappings(forLocalIdentifiers:)` (T-39).
public struct IDsToCloud: Request {
    public static let method = "ids.toCloud"
    /// The assets, collections and lists of this library.
    public var ids: [ObjectID]

    public init(ids: [ObjectID]) { self.ids = ids }

    public static let table = parameters(
        "The identifiers that entities have in every copy of the library, also in one into which their files were "
            + "exported and imported again.",
        blank: IDsToCloud(ids: []),
        [.required("ids", \.ids, .list(of: .id(), limit: CloudMappings.maxCount), "The entities of this library.")]
    )

    public typealias Result = CloudMappings
}

/// The result of a mapping between local and cloud identifiers.
public struct CloudMappings: JSONTabled {
    /// Token at which they were read.
    public var token: ChangeToken
    /// For each requested identifier the other one or the error.
    public var mappings: JSONObject

    public init(token: ChangeToken, mappings: JSONObject) {
        self.token = token
        self.mappings = mappings
    }

    /// The maximum number of identifiers in one request.
    public static let maxCount = 1000
    /// The maximum number of candidates that are reported for an ambiguous identifier.
    public static let maxCandidates = 100

    public static let table = JSONTable(
        "CloudMappings",
        "Identifiers of this library and of every copy of it.",
        unknown: .ignored,
        blank: CloudMappings(token: .none, mappings: [:]),
        [
            .required("token", \.token, .token, "Token at which they were read."),
            .required(
                "mappings",
                \.mappings,
                .members,
                "For each requested identifier {\"id\"}, or {\"error\", \"code\"}: identifier_not_found 3201, or "
                    + "multiple_identifiers 3202 with \"candidates\"."
            ),
        ]
    )

    /// Returns the entry of an identifier that was mapped.
    public static func found(_ id: String) -> JSON { ["id": .string(id)] }

    /// Returns the entry of an identifier that was not mapped.
    public static func failed(_ code: ErrorCode, candidates: [ObjectID] = []) -> JSON {
        var entry: JSONObject = ["error": .string(code.rawValue), "code": JSON(code.code)]
        if !candidates.isEmpty { entry["candidates"] = JSON(candidates.map(\.text)) }
        return .object(entry)
    }
}
