public import JSONValue

/// A revision of an entity or of its pixels. Equal revisions mean equal state.
///
/// It contains the sequence of the transaction that made the state; for moments of a limited view, a digest of their
/// facts. Opaque to clients.
public struct Revision: Sendable, Hashable, CustomStringConvertible {
    /// The sequence of the transaction that made the state, or the digest.
    public let sequence: Int64

    public init(_ sequence: Int64) { self.sequence = sequence }

    public var description: String { "r\(sequence)" }
}

extension JSONType where Value == Revision {
    /// The type of a revision.
    public static var revision: JSONType {
        JSONType(
            schema: ["type": "string", "pattern": "^r[0-9]{1,19}$"],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue, text.first == "r",
                    text.utf8.dropFirst().allSatisfy({ (0x30...0x39).contains($0) }),
                    let sequence = Int64(text.dropFirst())
                else { throw JSONProblem("expected a revision as found in an entity") }
                return Revision(sequence)
            },
            encode: { .string($0.description) }
        )
    }
}

extension JSONType where Value == ChangeToken {
    /// The type of a change token.
    public static var token: JSONType {
        JSONType(
            schema: ["type": "string", "maxLength": 52],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let text = json.stringValue, let token = ChangeToken(text) else {
                    throw JSONProblem("expected a change token as found in a reply")
                }
                return token
            },
            encode: { .string($0.description) }
        )
    }
}
