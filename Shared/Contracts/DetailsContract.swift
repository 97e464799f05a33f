public import JSONValue
public import PhotoModel

/// `changes.details`: what happened between two moments to a fetch result or to objects (spec S-24, S-65 to S-69).
public struct ChangesDetails: Request {
    public static let method = "changes.details"
    public var from: ChangeToken
    /// Nil: now.
    public var to: ChangeToken?
    /// The fetch whose results are compared.
    public var fetch: FetchDescription?
    /// Objects that are looked at.
    public var ids: [ObjectID]
    public var form: DetailsForm
    public var wantsIncrementalChangeDetails: Bool

    public init(
        from: ChangeToken,
        to: ChangeToken? = nil,
        fetch: FetchDescription? = nil,
        ids: [ObjectID] = [],
        form: DetailsForm = .details,
        wantsIncrementalChangeDetails: Bool = true
    ) {
        self.from = from
        self.to = to
        self.fetch = fetch
        self.ids = ids
        self.form = form
        self.wantsIncrementalChangeDetails = wantsIncrementalChangeDetails
    }

    public static let table = parameters(
        "What happened between two moments to the result of a fetch, or to objects.",
        blank: ChangesDetails(from: .none),
        [
            .required("from", \.from, .token, "The earlier moment."),
            .optional("to", \.to, .token, "The later moment; absent: now."),
            .optional("fetch", \.fetch, .object(FetchDescription.self), "The fetch whose results are compared."),
            .defaulted("ids", \.ids, .list(of: .id(), limit: 1000), "Objects that are looked at.", default: []),
            .defaulted("form", \.form, .name(DetailsForm.self), "How a result's details are told.", default: .details),
            .defaulted(
                "wantsIncrementalChangeDetails",
                \.wantsIncrementalChangeDetails,
                .flag,
                "False: only whether the result changed.",
                default: true
            ),
        ]
    )

    public struct Result: JSONTabled {
        public var from: ChangeToken
        public var to: ChangeToken
        /// Nil where the result did not change (spec V9), or no fetch was named.
        public var details: ChangeDetails?
        /// The same in PhotoKit's form, where it was asked for.
        public var rice: RICE?
        /// By identifier; what did not change is left out.
        public var objects: [ObjectDetails]

        public init(
            from: ChangeToken,
            to: ChangeToken,
            details: ChangeDetails? = nil,
            rice: RICE? = nil,
            objects: [ObjectDetails] = []
        ) {
            self.from = from
            self.to = to
            self.details = details
            self.rice = rice
            self.objects = objects
        }

        public static let table = JSONTable(
            "Details",
            "What happened between two moments.",
            unknown: .ignored,
            blank: Result(from: .none, to: .none),
            [
                .required("from", \.from, .token, "The earlier moment."),
                .required("to", \.to, .token, "The later moment: the token of the after result."),
                .optional("details", \.details, .object(ChangeDetails.self), "Of the result; absent: it is the same."),
                .optional("rice", \.rice, .object(RICE.self), "The same as removed, inserted, changed and moved."),
                .defaulted(
                    "objects",
                    \.objects,
                    .list(of: .object(ObjectDetails.self), limit: 1000),
                    "Those of the objects asked for that changed.",
                    default: []
                ),
            ]
        )
    }
}

/// What happened to one object: `PHObjectChangeDetails` (spec S-66).
public struct ObjectDetails: Sendable, Hashable, JSONTabled {
    public var id: ObjectID
    /// The entity; nil where it was not there.
    public var before: JSON?
    public var after: JSON?
    public var assetContentChanged: Bool
    public var objectWasDeleted: Bool

    public init(
        id: ObjectID,
        before: JSON? = nil,
        after: JSON? = nil,
        assetContentChanged: Bool = false,
        objectWasDeleted: Bool = false
    ) {
        self.id = id
        self.before = before
        self.after = after
        self.assetContentChanged = assetContentChanged
        self.objectWasDeleted = objectWasDeleted
    }

    public static let table = JSONTable(
        "ObjectDetails",
        "What happened to one object.",
        unknown: .ignored,
        blank: ObjectDetails(id: .none),
        [
            .required("id", \.id, .id(), "The object."),
            .optional("before", \.before, .any, "The entity before; absent where it was not there yet."),
            .optional("after", \.after, .any, "The entity after; absent where it is deleted."),
            .required("assetContentChanged", \.assetContentChanged, .flag, "The pixels changed."),
            .required("objectWasDeleted", \.objectWasDeleted, .flag, "It is gone from the library."),
        ]
    )
}
