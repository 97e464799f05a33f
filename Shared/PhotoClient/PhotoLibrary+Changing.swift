public import JSONValue
public import Basics
public import Contracts
public import PhotoModel

extension PhotoLibrary {
    /// Performs one transaction: all of its requests or none, exactly once.
    ///
    /// If the connection is lost or the catalog is unavailable, the transaction is sent again with the same id until
    /// the deadline. A caller that repeats a failed transaction must pass the same id.
    ///
    /// - Parameters:
    ///   - attachments: bytes that the requests refer to by number
    ///   - transaction: transaction id of at most 128 bytes; nil for a random one
    ///   - onBehalfOf: for services: the identity of the client they act for
    /// - Throws: the catalog's error; or the last transient error, after which it is unknown whether the transaction
    ///   was committed
    public func perform(
        _ requests: [ChangeRequest],
        attachments: [Bytes] = [],
        transaction: String? = nil,
        onBehalfOf: String? = nil,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> PerformChanges.Result {
        let request = PerformChanges(
            requests: requests,
            client: client,
            transaction: transaction ?? Self.randomTransaction(),
            onBehalfOf: onBehalfOf
        )
        return try await withRetries(deadline) { time throws(RPCError) in
            try await self.catalog.ask(request, attachments: attachments, deadline: time).result
        }
    }

    /// Returns a unique transaction id: 128 random bits in hexadecimal.
    public static func randomTransaction() -> String {
        var random = SystemRandomNumberGenerator()
        return random.nextHexadecimal()
    }
}
