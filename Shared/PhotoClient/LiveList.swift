import Basics
import Contracts
public import JSONValue
import Messaging
public import PhotoModel

extension PhotoLibrary {
    /// Returns the result of an asset fetch, and every change of it (S-63 to S-70). The list is at any time exactly the
    /// result at its token, also across lost messages and restarts of the broker.
    public func live(_ fetch: FetchDescription) -> LiveList { LiveList(library: self, fetch: fetch) }
}

/// A live fetch. Each iteration observes the fetch separately.
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
