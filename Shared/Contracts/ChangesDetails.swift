public import JSONValue
public import PhotoModel

/// `changes.details`: the changes of a fetch result or of objects between two tokens (S-24, S-65 to S-69).
public struct ChangesDetails: Request {
    public static let method = "changes.details"
    /// The earlier token.
    public var from: ChangeToken
    /// The later token; nil for the newest.
    public var to: ChangeToken?
    /// The fetch whose results are compared; nil for none.
    public var fetch: FetchDescription?
    /// Objects whose states are compared.
    public var ids: [ObjectID]
    /// Form of the result's details.
    public var form: DetailsForm
    /// False to get only whether the result changed.
    public var wantsIncrementalChangeDetails: Bool
    /// For services: the client with a limited grant whose view is requested.
    public var onBehalfOf: String?

    public init(
        from: ChangeToken,
        to: ChangeToken? = nil,
        fetch: FetchDescription? = nil,
        ids: [ObjectID] = [],
        form: DetailsForm = .details,
        wantsIncrementalChangeDetails: Bool = true,
        onBehalfOf: String? = nil
    ) {
        self.onBehalfOf = onBehalfOf
        self.from = from
        self.to = to
        self.fetch = fetch
        self.ids = ids
        self.form = form
        self.wantsIncrementalChangeDetails = wantsIncrementalChangeDetails
    }

    public static let table = parameters(
        "The changes of a fetch result, or of objects, between two tokens.",
        blank: ChangesDetails(from: .none),
        [
            .required("from", \.from, .token, "The earlier token."),
            .optional("to", \.to, .token, "The later token; absent: the newest."),
            .optional("fetch", \.fetch, .fetch(), "The fetch whose results are compared."),
            .defaulted("ids", \.ids, .list(of: .id(), limit: 1000), "Objects whose states are compared.", default: []),
            .defaulted("form", \.form, .name(DetailsForm.self), "Form of the result's details.", default: .details),
            .defaulted(
                "wantsIncrementalChangeDetails",
                \.wantsIncrementalChangeDetails,
                .flag,
                "If false, only whether the result changed.",
                default: true
            ),
            .limitedClient(\.onBehalfOf),
        ]
    )

    /// The changes between two tokens.
    public struct Result: JSONTabled {
        /// The earlier token.
        public var from: ChangeToken
        /// The later token, of the result after the change.
        public var to: ChangeToken
        /// The details; nil if the result did not change (V9) or the request has no fetch.
        public var details: ChangeDetails?
        /// The details as PhotoKit's index sets; nil unless requested.
        public var rice: RICE?
        /// The details of the requested objects that changed.
        public var objects: [ObjectDetails]
        /// True if the album, moment or folder of the fetch was deleted; then the result after the change is empty.
        public var objectWasDeleted = false

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
            "Changes between two tokens.",
            unknown: .ignored,
            blank: Result(from: .none, to: .none),
            [
                .required("from", \.from, .token, "The earlier token."),
                .required("to", \.to, .token, "The later token, of the result after the change."),
                .optional("details", \.details, .object(ChangeDetails.self), "Of the result; absent if unchanged."),
                .optional("rice", \.rice, .object(RICE.self), "The details as PhotoKit's index sets, if requested."),
                .defaulted(
                    "objects",
                    \.objects,
                    .list(of: .object(ObjectDetails.self), limit: 1000),
                    "The requested objects that changed.",
                    default: []
                ),
                .objectWasDeleted(\.objectWasDeleted),
            ]
        )
    }
}
