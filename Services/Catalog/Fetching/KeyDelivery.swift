import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel

/// Implements `fetch.keys`: reads a result's keys at one sequence, then sends them as byte credits arrive.
struct KeyDelivery: Sendable {
    let store: LibraryStore
    /// Bytes of keys in one notification.
    var chunkBytes = 1 << 20
    /// Bytes of keys in one response; they stay in memory until they are sent.
    var maxBytes = 1 << 30

    private struct Keys: Sendable {
        var chunks: [Bytes] = []
        var token = ChangeToken.none
        var count = 0
    }

    func keys(_ request: FetchKeys, _ context: RequestContext) async throws -> Reply {
        guard context.acceptsNotifications else {
            throw ErrorCode.invalidOptions.error("fetch.keys needs a DEALER socket; on a REQ socket request pages")
        }
        let fetch = try Fetch(request.fetch)
        guard fetch.kind.isDecidedByEntity else {
            throw ErrorCode.notObservable.error("fetch.keys does not support this fetch; request pages")
        }
        let keys = try await read(fetch, request.maxCount)
        for chunk in keys.chunks {
            try await context.notifier.notify(FetchKeys.notification, [:], attachments: [chunk])
        }
        return Reply(FetchKeys.Result(token: keys.token, count: keys.count).json)
    }

    private func read(_ fetch: Fetch, _ maxCount: Int) async throws -> Keys {
        let (chunkBytes, maxBytes) = (chunkBytes, maxBytes)
        return try await store.read { reader in
            var keys = Keys(token: try reader.head().token)
            var chunk: Bytes = []
            var total = 0
            let isThere = try reader.fetchKeys.each(fetch) { key in
                keys.count += 1
                total += key.bytes.count + 4
                guard keys.count <= maxCount, total <= maxBytes else {
                    throw ErrorCode.limitExceeded.error(
                        "the result has more than \(maxCount) keys, or their bytes more than \(maxBytes); "
                            + "narrow the fetch, or read pages with fetch.assets and members [\"id\"]",
                        ["limit": JSON(maxCount)]
                    )
                }
                if chunk.count + key.bytes.count + 4 > chunkBytes, !chunk.isEmpty {
                    keys.chunks.append(chunk)
                    chunk = []
                }
                let size = UInt32(truncatingIfNeeded: key.bytes.count)
                for shift in stride(from: 24, through: 0, by: -8) {
                    chunk.append(UInt8(truncatingIfNeeded: size >> UInt32(shift)))
                }
                chunk.append(contentsOf: key.bytes)
            }
            guard isThere else { throw ErrorCode.identifierNotFound.error("the object of the fetch does not exist") }
            if !chunk.isEmpty { keys.chunks.append(chunk) }
            return keys
        }
    }
}
