import JSONValue

/// `rpc.credit`: allows a streaming request to send more bytes.
struct GrantCredit: Request {
    static let method = "rpc.credit"
    var id: JSON = .null
    var bytes = 0

    static let table = parameters(
        "Adds bytes that the notifications of an open request may use; they wait while it has none. Without an id of its "
            + "own it is a notification and has no response.",
        blank: GrantCredit(),
        [
            .required("id", \.id, .requestID, "The id of a request that was sent with credit."),
            .required("bytes", \.bytes, .count(0...Int.max), "Bytes to add, to at most 64 MiB in all."),
        ]
    )

    struct Result: JSONTabled {
        var isCredited = false

        static let table = JSONTable(
            "Credited",
            "The outcome for the request.",
            unknown: .ignored,
            blank: Result(),
            [.required("credited", \.isCredited, .flag, "False if no request with this id and credit was open.")]
        )
    }
}
