public import JSONValue

/// `library.status`: the state of the library for reads and changes, and the reasons if one of them is not possible
/// (T-42, PhotoKit's `unavailabilityReason`).
public struct LibraryStatus: Request {
    public static let method = "library.status"
    /// The ``Result/since`` of a known status: the request waits for another one, at most until its deadline.
    public var after: Int64?

    public init(after: Int64? = nil) { self.after = after }

    public static let table = parameters(
        "The state of the library for reads and changes, with its problems. With after, the request waits until it has "
            + "changed, at most until its deadline. The topic availability has the same messages.",
        blank: LibraryStatus(),
        [
            .optional(
                "after",
                \.after,
                .integer(0...Int64.max),
                "since of a known status: wait for another one."
            )
        ]
    )

    /// The state of the library, and all of its problems.
    public struct Result: JSONTabled, Hashable {
        /// The most severe of the problems, or `available`.
        public var state: AvailabilityState
        /// The time of the last change of the status, in microseconds since 1970; different for each change.
        public var since: Int64
        /// True if photos, albums and the history can be read.
        public var isReadable: Bool
        /// True if changes are accepted.
        public var isWritable: Bool
        /// The reasons, the most severe first; empty if the library is available.
        public var problems: [Problem]
        /// The role of the catalog that answers.
        public var role: CatalogRole?
        /// The number of the current writer, for several catalogs; each takeover raises it.
        public var epoch: Int64?

        public init(since: Int64, problems: [Problem] = []) {
            self.since = since
            self.problems = problems
            state = problems.first?.state ?? .available
            isReadable = problems.allSatisfy(\.state.isReadable)
            isWritable = problems.allSatisfy(\.state.isWritable)
        }

        public static let table = JSONTable(
            "LibraryStatus",
            "The state of the library for reads and changes.",
            unknown: .ignored,
            blank: Result(since: 0),
            [
                .required("state", \.state, .name(AvailabilityState.self), "The gravest problem, or available."),
                .required(
                    "since",
                    \.since,
                    .integer(0...Int64.max),
                    "When this became so, microseconds since 1970; another number for each change."
                ),
                .required("isReadable", \.isReadable, .flag, "True if photos, albums and the history can be read."),
                .required("isWritable", \.isWritable, .flag, "True if changes are accepted."),
                .defaulted(
                    "problems",
                    \.problems,
                    .list(of: .object(Problem.self), limit: AvailabilityState.allCases.count),
                    "The reasons, gravest first.",
                    default: []
                ),
                .optional(
                    "role",
                    \.role,
                    .name(CatalogRole.self),
                    "The role of the catalog that answers: it writes the library, or stands by."
                ),
                .optional("epoch", \.epoch, .integer(0...Int64.max), CatalogRole.epoch),
            ]
        )
    }

    /// A problem that restricts the use of the library.
    public struct Problem: JSONTabled, Hashable {
        /// The state that the problem causes.
        public var state: AvailabilityState
        /// The name of the error that affected requests have.
        public var name: String
        /// The number of that error.
        public var code: Int64
        /// The problem, and its remedy, for people.
        public var message: String

        public init(_ state: AvailabilityState, _ message: String) {
            self.state = state
            self.message = message
            let error = state.error ?? .internalError
            name = error.rawValue
            code = Int64(error.code)
        }

        /// The error of a request that the problem affects.
        public var rpcError: RPCError {
            (state.error ?? .internalError).error(message, ["state": .string(state.rawValue)])
        }

        public static let table = JSONTable(
            "LibraryProblem",
            "One reason why the library cannot be used as usual.",
            unknown: .ignored,
            blank: Problem(.available, ""),
            [
                .required("state", \.state, .name(AvailabilityState.self), "The state that it causes."),
                .required("name", \.name, .text(maxBytes: 64), "The name of the error that affected requests have."),
                .required("code", \.code, .integer(Int64.min...Int64.max), "The number of that error."),
                .required("message", \.message, .text(maxBytes: 4096), "The problem, and its remedy."),
            ]
        )
    }
}
