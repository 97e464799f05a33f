import JSONValue

/// The requests that the transport itself answers, for every service.
enum TransportRequests {
    static let methods = [
        MethodDescription(CancelRequest.self, access: .public), MethodDescription(GrantCredit.self, access: .public),
    ]
}

extension JSONType where Value == JSON {
    /// The type of the id of a request.
    static var requestID: JSONType {
        JSONType(
            schema: ["anyOf": [["type": "integer"], ["type": "string", "maxLength": 128]]],
            decode: { (json: JSON) throws(JSONProblem) in json },
            encode: { $0 }
        )
    }
}
