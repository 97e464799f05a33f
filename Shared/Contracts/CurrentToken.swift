public import JSONValue
public import PhotoModel

/// `changes.token`: the newest token of the library (T-35).
public struct CurrentToken: Request {
    public static let method = "changes.token"
    public init() {}
    public static let table = parameters("The newest token of the library.", blank: CurrentToken())

    /// The newest and the oldest token of the library.
    public struct Result: JSONTabled {
        /// The newest token.
        public var token: ChangeToken
        /// The oldest token from which the history is complete.
        public var oldest: ChangeToken

        public init(token: ChangeToken, oldest: ChangeToken) {
            self.token = token
            self.oldest = oldest
        }

        public static let table = JSONTable(
            "CurrentToken",
            "The newest and the oldest token of the library.",
            unknown: .ignored,
            blank: Result(token: .none, oldest: .none),
            [
                .required("token", \.token, .token, "The newest token."),
                .required("oldest", \.oldest, .token, "The oldest token from which the history is complete."),
            ]
        )
    }
}
