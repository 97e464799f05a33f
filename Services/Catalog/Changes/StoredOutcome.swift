import JSONValue

/// The outcome of a transaction, kept for clients that repeat the request.
struct StoredOutcome: Sendable, Equatable {
    let digest: [UInt8]
    let reply: [UInt8]

    /// Returns the same reply again.
    ///
    /// - Throws: ``CatalogError/transactionReused(_:)`` if the request has other parameters
    func result(for digest: [UInt8], _ key: OutcomeKey) throws -> JSON {
        guard digest == self.digest else { throw CatalogError.transactionReused(key.transaction) }
        return try JSON(parsing: reply)
    }
}

/// The key of an idempotent transaction: the identity, the client's name and the transaction id.
struct OutcomeKey: Sendable, Hashable {
    let identity: String
    let client: String
    let transaction: String
}
