import Basics
public import Contracts
public import Messaging
public import PhotoModel

extension PhotoLibrary {
    /// Performs one transaction: all of its requests or none, and once, however often it has to be sent.
    ///
    /// When the connection breaks or the catalog is away, it is sent again under the same transaction id until the time
    /// is up; so whoever repeats a transaction that failed gives the id that it had.
    ///
    /// - Parameters:
    ///   - attachments: bytes that the requests name by number
    ///   - transaction: the caller's name for it, at most 128 bytes; nil: a random one
    ///   - onBehalfOf: for services: the client they act for
    /// - Throws: the catalog's refusal; or the last failure, and then it is unknown whether the change was committed
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
        return try await retrying(deadline) { time throws(RPCError) in
            try await self.catalog.ask(request, attachments: attachments, deadline: time).result
        }
    }

    /// A name for a transaction that nobody else gives: 128 random bits.
    public static func randomTransaction() -> String {
        var random = SystemRandomNumberGenerator()
        return random.nextHexadecimal()
    }
}
