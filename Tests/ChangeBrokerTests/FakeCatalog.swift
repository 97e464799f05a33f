import Basics
import Contracts
import JSONValue
import Messaging
import PhotoModel

/// A catalog that has only a history, and answers the requests that a broker sends.
actor FakeCatalog {
    private(set) var library: String
    private(set) var records: [ChangeRecord] = []
    private var oldest: Int64 = 0
    private var waiting: [AsyncStream<Void>.Continuation] = []
    /// True while new records are not sent to followers.
    private var isWithholding = false
    /// True while the catalog refuses requests for its head.
    private(set) var isBusy = false
    /// The number of requests for pages of history.
    private(set) var pageRequests = 0
    /// The number of requests for the keys of a result.
    private(set) var keyRequests = 0

    init(library: String = testLibrary) { self.library = library }

    /// The number of assets at which a record counts as large, since it may have a megabyte. A message has at most four
    /// large records.
    static let largeRecord = 16

    var head: Int64 { records.last?.sequence ?? 0 }
    var token: ChangeToken { ChangeToken(library: library, sequence: head) }
    var current: CurrentToken.Result {
        CurrentToken.Result(token: token, oldest: ChangeToken(library: library, sequence: oldest))
    }

    /// Commits one transaction that touches some assets.
    @discardableResult
    func commit(_ ids: [ObjectID] = [assetID(1)], caption: String? = nil, edit: PublishedEdit? = nil) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: head + 1,
            library: library,
            date: (head + 1) * 1000,
            origin: ChangeOrigin(identity: "uid:1")
        )
        record.assets = ids.map { id in
            var asset = Asset(id: id, revision: Revision(record.sequence))
            asset.caption = caption
            return EntityChange(before: nil, after: asset)
        }
        if let edit { record.edits = [edit] }
        records.append(record)
        wake()
        return record
    }

    func commit(times: Int) { for _ in 0..<times { commit() } }

    /// Holds back new records from followers, or sends them all at once.
    func setWithholding(_ isWithholding: Bool) {
        self.isWithholding = isWithholding
        wake()
    }

    /// Refuses requests for its head, or answers them again.
    func setBusy(_ isBusy: Bool) { self.isBusy = isBusy }

    /// Trims history up to a sequence.
    func trim(upTo sequence: Int64) { oldest = sequence }

    /// Becomes a library restored from a backup: another history with fewer records.
    func restore(as other: String, keeping count: Int) {
        library = other
        records = records.prefix(count).map { record in
            var record = record
            record.library = other
            return record
        }
        wake()
    }

    private func wake() {
        let ready = waiting
        waiting = []
        for continuation in ready { continuation.finish() }
    }

    func page(_ request: ChangesSince) throws(RPCError) -> ChangePage {
        pageRequests += 1
        let after = try check(request.token ?? ChangeToken(library: library, sequence: oldest))
        let filter = FeedTopicFilter(request.topics)
        var page = ChangePage(records: [], token: token, oldest: current.oldest, head: token)
        var large = 0
        for record in records where record.sequence > after {
            guard filter.includes(record.topics) else { continue }
            page.records.append(record.json)
            if record.assets.count >= Self.largeRecord { large += 1 }
            if page.records.count == request.limit || large == 4 {
                page.token = record.token
                break
            }
        }
        return page
    }

    /// Commits one transaction that creates, changes or deletes assets, albums and folders.
    @discardableResult
    func commit(
        _ changes: [EntityChange<Asset>],
        collections: [EntityChange<AssetCollection>] = [],
        lists: [EntityChange<CollectionList>] = []
    ) -> ChangeRecord {
        var record = ChangeRecord(
            sequence: head + 1,
            library: library,
            date: (head + 1) * 1000,
            origin: ChangeOrigin(identity: "uid:1")
        )
        record.assets = changes
        record.collections = collections
        record.lists = lists
        records.append(record)
        wake()
        return record
    }

    /// Creates an asset with a rating, changes its rating, or deletes it if the rating is nil.
    @discardableResult
    func rate(_ number: UInt64, _ rating: Int?) -> ChangeRecord {
        let before = assets[assetID(number)]
        let after = rating.map { rating in
            var asset = Asset(id: assetID(number), revision: Revision(head + 1))
            asset.rating = rating
            return asset
        }
        // A record has no entity that exists neither before nor after.
        return commit(before == nil && after == nil ? [] : [EntityChange(before: before, after: after)])
    }

    /// The assets after all records.
    var assets: [ObjectID: Asset] {
        var assets: [ObjectID: Asset] = [:]
        for change in records.flatMap(\.assets) { assets[change.id] = change.after }
        return assets
    }

    /// Returns the result of a fetch, after offset and limit.
    func list(_ fetch: Fetch) -> [ObjectID] {
        let all = assets.values.filter(fetch.includes).sorted(by: fetch.areInIncreasingOrder).map(\.id)
        return Array(all.dropFirst(fetch.offset).prefix(fetch.limit > 0 ? fetch.limit : .max))
    }

    /// Returns the keys of a result in one frame, as the catalog sends them.
    func keys(_ request: FetchKeys) throws -> (frame: Bytes, end: FetchKeys.Result) {
        keyRequests += 1
        let fetch = try Fetch(request.fetch)
        if let album = fetch.kind.object, album.kind == .assetCollection {
            let states = records.flatMap { record in
                record.collections.filter { $0.id == album }.map { (record.sequence, $0.after != nil) }
            }
            guard states.last?.1 == true else {
                let existed = states.last { $0.0 <= request.since?.sequence ?? -1 }?.1 == true
                guard existed else { throw ErrorCode.identifierNotFound.error("\(album) does not exist") }
                var end = FetchKeys.Result(token: token, count: 0)
                end.objectWasDeleted = true
                return ([], end)
            }
        }
        let keys = assets.values.filter(fetch.includes).map { fetch.resultKey(of: $0) }.sorted()
        guard keys.count <= request.maxCount else { throw ErrorCode.limitExceeded.error("too many keys") }
        let frame = keys.flatMap { key in
            (0..<4).reversed().map { UInt8(truncatingIfNeeded: key.bytes.count >> ($0 * 8)) } + key.bytes
        }
        return (frame, FetchKeys.Result(token: token, count: keys.count))
    }

    private func check(_ token: ChangeToken) throws(RPCError) -> Int64 {
        guard token.library == library, token.sequence >= oldest, token.sequence <= head else {
            throw ErrorCode.tokenExpired.error(
                "fetch again",
                ["head": .string(self.token.description), "oldest": .string(current.oldest.description)]
            )
        }
        return token.sequence
    }

    fileprivate func records(after token: ChangeToken) async throws(RPCError) -> [ChangeRecord] {
        while try check(token) == head || isWithholding {
            let (signal, sink) = AsyncStream.makeStream(of: Void.self)
            waiting.append(sink)
            for await _ in signal {}
            if Task.isCancelled { throw .cancelled("stopped") }
        }
        let next = records.filter { $0.sequence > token.sequence }.prefix(100)
        return Array(next.contains { $0.assets.count >= Self.largeRecord } ? next.prefix(4) : next)
    }
}

struct FakeCatalogHandler: RequestHandler {
    let catalog: FakeCatalog

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .token:
            guard await !catalog.isBusy else { throw ErrorCode.busy.error("the fake catalog is busy; try again") }
            return Reply(await catalog.current.json)
        case .since(let since): return Reply(try await catalog.page(since).json)
        case .follow(let follow):
            var token = follow.token ?? .none
            if follow.token == nil { token = await catalog.token }
            while true {
                let records = try await catalog.records(after: token)
                guard let last = records.last else { continue }
                token = last.token
                try await context.notifier.notify(
                    ChangesFollow.notification,
                    ["records": .array(records.map(\.json)), "token": .string(token.description)]
                )
            }
        case .fetchKeys(let keys):
            do {
                let (frame, end) = try await catalog.keys(keys)
                if !frame.isEmpty {
                    try await context.notifier.notify(FetchKeys.notification, [:], attachments: [frame])
                }
                return Reply(end.json)
            } catch {
                throw (error as? RPCError) ?? ErrorCode.internalError.error("\(error)")
            }
        default: throw ErrorCode.methodNotFound.error("the fake catalog has no such method")
        }
    }
}

let testLibrary = String(repeating: "ab", count: 16)
let otherLibrary = String(repeating: "cd", count: 16)

func assetID(_ number: UInt64) -> ObjectID {
    let digits = String(number)
    return ObjectID("a" + String(repeating: "0", count: 26 - digits.count) + digits) ?? .none
}
