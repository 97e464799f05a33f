public import JSONValue
public import PhotoModel

/// The changes of a fetch result between two tokens (S-65 to S-70).
public struct FetchDetailsResult: JSONTabled {
    /// Id of the observation.
    public var observation: String
    /// The token of the result before the change; nil if the request named none.
    public var from: ChangeToken?
    /// The token of the result after the change, from which the next details are requested.
    public var token: ChangeToken
    /// The number of objects after the change, with offset and limit applied.
    public var count: Int
    /// The details; nil if the lists are equal and none of their objects changed (S-65).
    public var details: ChangeDetails?
    /// PhotoKit's index sets; nil unless they were requested and there are details.
    public var rice: RICE?
    /// All objects after the change if the details are not incremental; nil otherwise, or above ``maxIDs`` objects.
    public var ids: [ObjectID]?
    /// True if the album, moment or folder of the fetch is deleted; then the result is empty.
    public var objectWasDeleted = false

    /// The maximum number of objects in ``ids``.
    public static let maxIDs = 10_000

    public init(observation: String, token: ChangeToken, count: Int) {
        self.observation = observation
        self.token = token
        self.count = count
    }

    static func fields<Root: DetailsCarrying>(_: Root.Type) -> [JSONField<Root>] {
        [
            .required("observation", \Root.carried.observation, .text(maxBytes: 64), "Id of the observation."),
            .optional("from", \Root.carried.from, .token, "Token of the result before the change."),
            .required("token", \Root.carried.token, .token, "Token of the result after the change."),
            .required("count", \Root.carried.count, .count(0...Int.max), "Number of objects after the change."),
            .optional("details", \Root.carried.details, .object(ChangeDetails.self), "Absent if nothing changed."),
            .optional("rice", \Root.carried.rice, .object(RICE.self), "PhotoKit's index sets, if requested."),
            .optional(
                "ids",
                \Root.carried.ids,
                .list(of: .id(), limit: maxIDs),
                "All objects after the change if the details are not incremental; absent above 10,000 objects."
            ),
            .objectWasDeleted(\Root.carried.objectWasDeleted),
        ]
    }

    public static let table = JSONTable(
        "FetchDetails",
        "Changes of a fetch result between two tokens.",
        unknown: .ignored,
        blank: FetchDetailsResult(observation: "", token: .none, count: 0),
        fields(FetchDetailsResult.self)
    )
}

/// A result that contains the members of ``FetchDetailsResult``.
protocol DetailsCarrying {
    /// These members.
    var carried: FetchDetailsResult { get set }
}

extension FetchDetailsResult: DetailsCarrying {
    var carried: FetchDetailsResult {
        get { self }
        set { self = newValue }
    }
}
