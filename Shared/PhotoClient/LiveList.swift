public import JSONValue
public import PhotoModel

/// An observed fetch. Each iteration observes the fetch separately.
public struct LiveList: AsyncSequence, Sendable {
    public typealias Element = LiveListEvent
    public typealias Failure = RPCError

    let library: PhotoLibrary
    let fetch: FetchDescription

    public func makeAsyncIterator() -> Iterator { Iterator(reader: LiveListReader(library, fetch)) }

    public struct Iterator: AsyncIteratorProtocol {
        let reader: LiveListReader

        /// Waits for and returns the next event; nil if the task is cancelled or the library is closed.
        ///
        /// - Throws: permanent errors: `not_observable`, `limit_exceeded`, or an invalid fetch
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> LiveListEvent? {
            try await reader.next()
        }

        public mutating func next() async throws(RPCError) -> LiveListEvent? { try await reader.next() }
    }
}

extension PhotoLibrary {
    /// Returns the result of an asset fetch, and every change of it (S-63 to S-70). The list is always exactly the
    /// result at its token, also across lost messages and restarts of the broker.
    public func live(_ fetch: FetchDescription) -> LiveList { LiveList(library: self, fetch: fetch) }
}

// MARK: - Events

/// An event of an observed fetch.
public enum LiveListEvent: Sendable, Hashable {
    /// The whole list at a token: at first, and again if there are no details for a change (S-69).
    case list([ObjectID], ChangeToken)
    /// The changes, the list after them, and its token.
    case changed(ChangeDetails, [ObjectID], ChangeToken)

    /// The token of the list.
    public var token: ChangeToken {
        switch self {
        case .list(_, let token), .changed(_, _, let token): token
        }
    }

    /// The list after the event.
    public var ids: [ObjectID] {
        switch self {
        case .list(let ids, _), .changed(_, let ids, _): ids
        }
    }
}
