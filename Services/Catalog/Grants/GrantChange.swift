import PhotoModel

/// A change of one grant, as part of a write request; it is applied within the write transaction.
struct GrantChange: Sendable {
    let identity: String
    /// Returns the grant after the change from the stored one; nil if nothing changes.
    let apply: @Sendable (_ stored: Grant?) throws -> Grant?
}

extension WriteRequest {
    /// Returns a transaction that changes one grant.
    static func grant(_ change: GrantChange, by identity: String, client: String? = nil) -> WriteRequest {
        var origin = ChangeOrigin(identity: identity)
        origin.client = client
        var request = WriteRequest(changes: [], origin: origin, key: nil, digest: [])
        request.grant = change
        return request
    }

    /// Returns a transaction that records a question about consent; it changes no entity.
    static func question(_ question: ConsentQuestion, by identity: String) -> WriteRequest {
        var request = WriteRequest(changes: [], origin: ChangeOrigin(identity: identity), key: nil, digest: [])
        request.question = question
        return request
    }
}
