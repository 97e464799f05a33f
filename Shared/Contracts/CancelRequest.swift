import JSONValue

/// `rpc.cancel`: cancels an open request of the same connection.
struct CancelRequest: Request {
    static let method = "rpc.cancel"
    var id: JSON = .null

    static let table = parameters(
        "Cancels an open or waiting request of the same connection, which then ends with user_cancelled; changes.follow "
            + "and feed.follow end with their last token. Without an id of its own it is a notification and has no "
            + "response.",
        blank: CancelRequest(),
        [.required("id", \.id, .requestID, "The id of the request.")]
    )

    struct Result: JSONTabled {
        var isCancelled = false

        static let table = JSONTable(
            "Cancelled",
            "The outcome for the request.",
            unknown: .ignored,
            blank: Result(),
            [.required("cancelled", \.isCancelled, .flag, "False if no request with this id was open.")]
        )
    }
}
