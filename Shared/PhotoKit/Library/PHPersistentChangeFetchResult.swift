public import Foundation
import Contracts
import JSONValue
import PhotoModel

/// The transactions after a point in the history, in order: `PHPersistentChangeFetchResult`. They are read when they
/// are needed, in pages of 100.
///
/// Reading a page blocks the caller for as long as the library is not available. The library may also refuse: access
/// was revoked, the library was closed, or its history no longer includes the page. A loop then ends before the last
/// transaction, and ``error`` is the reason. The asynchronous ``changes()`` throws instead, and does not block.
public struct PHPersistentChangeFetchResult: Sequence, Sendable {
    let connection: LibraryConnection
    let token: ChangeToken
    let head: ChangeToken
    let failure = ReadFailure()

    /// The reason why a page could not be read; nil if the library has not refused.
    ///
    /// If it is nil after a loop, the loop returned all transactions. If it is not, continue from the `changeToken` of
    /// the last transaction that it returned, not from ``PHPhotoLibrary/currentChangeToken``. Copies of the result
    /// share it, and it remains after the library answers again. PhotoKit has no counterpart.
    public var error: PHPhotosError? { failure.error }

    /// Returns an iterator that ends before the first transaction that cannot be read; ``error`` then has the reason.
    public func makeIterator() -> Iterator { Iterator(cursor: HistoryCursor(self), failure: failure) }

    /// Calls a block with each transaction, until the block sets `stop`, or until a transaction cannot be read;
    /// ``error`` then has the reason.
    public func enumerateChanges(_ block: (PHPersistentChange, UnsafeMutablePointer<ObjCBool>) -> Void) {
        var stop = ObjCBool(false)
        for change in self {
            block(change, &stop)
            if stop.boolValue { return }
        }
    }

    /// The position of a loop in the history.
    public struct Iterator: IteratorProtocol {
        var cursor: HistoryCursor
        let failure: ReadFailure

        /// Returns the next transaction; nil after the last one at the time of the fetch, and if the library refuses
        /// the request.
        public mutating func next() -> PHPersistentChange? {
            let connection = cursor.connection
            do throws(RPCError) {
                while let request = cursor.request {
                    let page = try connection.waitForAnswer { () async throws(RPCError) in
                        try await connection.askCatalog(request)
                    }
                    try cursor.insert(page)
                }
                return cursor.next()
            } catch {
                failure.record(error, connection)
                cursor.end()
                return nil
            }
        }
    }
}

// MARK: - Asynchronous loops

extension PHPersistentChangeFetchResult {
    /// Returns the transactions for a loop that must not block: `for try await change in result.changes()`.
    ///
    /// It throws a ``PHPhotosError`` where a loop over the result itself would end early.
    public func changes() -> Changes { Changes(result: self) }

    /// The transactions of a result, which are read in pages. Its error is a ``PHPhotosError``.
    public struct Changes: AsyncSequence, Sendable {
        let result: PHPersistentChangeFetchResult

        public func makeAsyncIterator() -> Iterator { Iterator(cursor: HistoryCursor(result)) }

        /// The position of a loop in the history.
        public struct Iterator: AsyncIteratorProtocol {
            var cursor: HistoryCursor

            /// Returns the next transaction; nil after the last one at the time of the fetch.
            public mutating func next() async throws -> PHPersistentChange? {
                do throws(RPCError) {
                    while let request = cursor.request {
                        let page = try await cursor.connection.askCatalog(request)
                        try cursor.insert(page)
                    }
                    return cursor.next()
                } catch {
                    throw PHPhotosError(error)
                }
            }
        }
    }
}

/// The position of a loop in the history, with the remaining transactions of its page.
struct HistoryCursor: Sendable {
    let connection: LibraryConnection
    /// The point up to which the history was read.
    private var token: ChangeToken
    /// The point at which the loop ends.
    private let head: ChangeToken
    private var records: ArraySlice<ChangeRecord> = []

    private static let pageSize = 100

    init(_ result: PHPersistentChangeFetchResult) {
        connection = result.connection
        token = result.token
        head = result.head
    }

    /// The request for the next page; nil if none is needed for the next transaction.
    var request: ChangesSince? {
        guard records.isEmpty, token.sequence < head.sequence else { return nil }
        return ChangesSince(token: token, limit: Self.pageSize)
    }

    /// Adds the result of ``request``.
    ///
    /// - Throws: `internal_error` if the page is empty or has an invalid transaction
    mutating func insert(_ page: ChangePage) throws(RPCError) {
        guard page.token != token else { throw ErrorCode.internalError.error("the library returned an empty page") }
        var read: [ChangeRecord] = []
        do {
            for record in page.records { read.append(try ChangeRecord(json: record)) }
        } catch {
            throw ErrorCode.internalError.error("the library returned an invalid transaction: \(error)")
        }
        records = read[...]
        token = page.token
    }

    /// Returns the next transaction that was read; nil after the last one.
    mutating func next() -> PHPersistentChange? {
        guard let record = records.popFirst(), record.sequence <= head.sequence else { return nil }
        return PHPersistentChange(record)
    }

    /// Ends the loop: no transaction follows.
    mutating func end() {
        records = []
        token = head
    }
}

// MARK: - Fetching

extension PHPhotoLibrary {
    /// Returns the transactions after a point in the history (T-36).
    ///
    /// - Throws: ``PHPhotosError/Code/persistentChangeTokenExpired`` if the history does not go back that far: fetch
    ///   everything again
    public func fetchPersistentChanges(since token: PHPersistentChangeToken) throws -> PHPersistentChangeFetchResult {
        do throws(RPCError) {
            return try connection.wait { [connection] () async throws(RPCError) in
                try await connection.persistentChanges(since: token.token)
            }
        } catch {
            throw PHPhotosError(error)
        }
    }

    /// Returns the transactions as ``fetchPersistentChanges(since:)`` does, for code that must not block.
    public func persistentChanges(
        since token: PHPersistentChangeToken
    ) async throws -> PHPersistentChangeFetchResult {
        do throws(RPCError) {
            return try await connection.persistentChanges(since: token.token)
        } catch {
            throw PHPhotosError(error)
        }
    }
}

extension LibraryConnection {
    /// Returns the transactions after a point in the history. The first one is requested to validate the token.
    fileprivate func persistentChanges(
        since token: ChangeToken
    ) async throws(RPCError) -> PHPersistentChangeFetchResult {
        let page = try await askCatalog(ChangesSince(token: token, limit: 1))
        return PHPersistentChangeFetchResult(connection: self, token: token, head: page.head)
    }
}
