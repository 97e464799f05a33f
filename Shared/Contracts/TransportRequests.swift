import JSONValue

/// The requests that the transport itself answers, for every service.
enum TransportRequests {
    static let methods = [MethodDescription(CancelRequest.self), MethodDescription(GrantCredit.self)]
}

/// `rpc.cancel`: cancels an open request of the same connection.
struct CancelRequest: Request {
    static let method = "rpc.cancel"
    var id: JSON = .null

    static let table = parameters(
        "Cancels an open or waiting request of the same connection, which then ends with user_cancelled. Without an id "
            + "of its own it is a notification and has no response.",
        blank: CancelRequest(),
        [.required("id", \.id, .requestID, "The id of the request.")]
    )

    struct Result: JSONTabled {
        var isCancelled = false

        static let table = JSONTable(
            "Cancelled",
            "Whether there was such a request.",
            unknown: .ignored,
            blank: Result(),
            [.required("cancelled", \.isCancelled, .flag, "False if no request with this id was open.")]
        )
    }
}

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
            "Whether there was such a request.",
            unknown: .ignored,
            blank: Result(),
            [.required("credited", \.isCredited, .flag, "False if no request with this id and credit was open.")]
        )
    }
}

extension JSONType where Value == JSON {
    /// The id of a request.
    fileprivate static var requestID: JSONType {
        JSONType(
            schema: ["anyOf": [["type": "integer"], ["type": "string", "maxLength": 128]]],
            decode: { (json: JSON) throws(JSONProblem) in json },
            encode: { $0 }
        )
    }
}
