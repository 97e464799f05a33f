public import JSONValue

/// A question to the owner about consent to one transaction (S-13), in one of its states.
public struct ConsentQuestion: Sendable, Hashable, JSONTabled {
    /// The states of a question.
    public enum State: String, Sendable, CaseIterable {
        case asked, approved, declined, expired
    }

    /// Identifies the question in `grants.approve` and `grants.deny`.
    public var id: String
    /// The identity whose transaction waits.
    public var identity: String
    /// The name that the client gave itself.
    public var client: String
    /// The client's transaction id; nil if it gave none.
    public var transaction: String?
    /// The state.
    public var state: State
    /// The effects of the transaction, for people.
    public var summary: String
    /// The number of objects that each kind of request names, by the request's type.
    public var counts: JSONObject
    /// The first ``maxObjects`` objects that the requests name.
    public var objects: [ObjectID]
    /// The time at which it was asked, in microseconds since 1970.
    public var date: Int64
    /// The identity that decided; nil if there is no decision.
    public var decidedBy: String?

    public init(
        id: String,
        identity: String,
        client: String = "",
        transaction: String? = nil,
        state: State = .asked,
        summary: String = "",
        counts: JSONObject = [:],
        objects: [ObjectID] = [],
        date: Int64 = 0,
        decidedBy: String? = nil
    ) {
        self.id = id
        self.identity = identity
        self.client = client
        self.transaction = transaction
        self.state = state
        self.summary = summary
        self.counts = counts
        self.objects = objects
        self.date = date
        self.decidedBy = decidedBy
    }

    /// The maximum number of ``objects``.
    public static let maxObjects = 100

    public static let table = JSONTable(
        "ConsentQuestion",
        "The question whether one transaction may be performed.",
        unknown: .ignored,
        blank: ConsentQuestion(id: "", identity: ""),
        [
            .required("id", \.id, .text(maxBytes: 64), "The question, for grants.approve and grants.deny."),
            .required("identity", \.identity, .text(maxBytes: 256), "The identity whose transaction waits."),
            .defaulted("client", \.client, .text(maxBytes: 128), "The name that the client gave itself.", default: ""),
            .optional("transaction", \.transaction, .text(maxBytes: 128), "The client's name for the transaction."),
            .required("state", \.state, .name(State.self), "The state."),
            .required("summary", \.summary, .text(maxBytes: 1024), "The effects of the transaction."),
            .required("counts", \.counts, .counts, "Objects by the type of the request that names them."),
            .required(
                "objects",
                \.objects,
                .list(of: .id(), limit: maxObjects),
                "The first objects that the requests name."
            ),
            .required("date", \.date, .date(), "When it was asked."),
            .optional("decidedBy", \.decidedBy, .text(maxBytes: 256), "The identity that decided."),
        ]
    )
}

extension JSONType where Value == JSONObject {
    /// The type of an object whose members are numbers of objects.
    fileprivate static var counts: JSONType {
        JSONType(
            schema: ["type": "object", "additionalProperties": ["type": "integer", "minimum": 0]],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let object = json.objectValue else { throw JSONProblem("expected an object") }
                for (name, value) in object.members {
                    guard let count = value.intValue, count >= 0 else {
                        throw JSONProblem("expected a whole number from 0", path: [name])
                    }
                }
                return object
            },
            encode: { .object($0) }
        )
    }
}
