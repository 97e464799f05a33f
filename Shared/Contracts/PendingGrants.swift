public import JSONValue
public import PhotoModel

/// `grants.pending`: the access requests and the questions about consent that wait for the owner of the library.
public struct PendingGrants: Request {
    public static let method = "grants.pending"
    public init() {}
    public static let table = parameters(
        "The questions that wait for the owner: requests for access of the last hour, and transactions that need "
            + "consent. The oldest are first.",
        blank: PendingGrants()
    )

    /// The access requests and questions that wait for the owner of the library, the oldest first.
    public struct Result: JSONTabled {
        /// Requests for access.
        public var grants: [Grant]
        /// Transactions that need consent.
        public var questions: [ConsentQuestion]

        public init(grants: [Grant], questions: [ConsentQuestion]) {
            self.grants = grants
            self.questions = questions
        }

        public static let table = JSONTable(
            "PendingGrants",
            "The questions that wait for the owner of the library.",
            unknown: .ignored,
            blank: Result(grants: [], questions: []),
            [
                .required("grants", \.grants, .list(of: .object(Grant.self), limit: 1000), "Requests for access."),
                .required(
                    "questions",
                    \.questions,
                    .list(of: .object(ConsentQuestion.self), limit: 1000),
                    "Transactions that need consent."
                ),
            ]
        )
    }
}
