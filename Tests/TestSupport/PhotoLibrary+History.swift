import Contracts
import JSONValue
public import PhotoClient
public import PhotoModel

extension PhotoLibrary {
    /// Returns all change records after a token, read page by page from the change-broker.
    public func history(after token: ChangeToken) async throws -> [ChangeRecord] {
        var records: [ChangeRecord] = []
        var cursor = token
        while true {
            let page = try await changeBroker.ask(FeedSince(token: cursor, limit: 500)).result
            records += try page.records.map { try ChangeRecord(json: $0) }
            cursor = page.token
            guard page.hasMore else { return records }
        }
    }
}
