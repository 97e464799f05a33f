import Contracts
import JSONValue
import Messaging
import PhotoModel

/// A catalog that is nothing but its history: what the broker asks of one.
actor FakeCatalog {
    private(set) var library: String
    private(set) var records: [ChangeRecord] = []
    private var oldest: Int64 = 0
    private var waiting: [AsyncStream<Void>.Continuation] = []
    /// Questions for pages of history so far.
    private(set) var pagesAsked = 0

    init(library: String = testLibrary) { self.library = library }

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

    /// Forgets history up to a sequence.
    func trim(upTo sequence: Int64) { oldest = sequence }

    /// Becomes a library restored from a copy: another history with fewer records.
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
        pagesAsked += 1
        let after = try check(request.token ?? ChangeToken(library: library, sequence: oldest))
        let topics = Set(request.topics)
        var page = ChangePage(records: [], token: token, oldest: current.oldest, head: token)
        for record in records where record.sequence > after {
            guard topics.isEmpty || record.topics.contains(where: topics.contains) else { continue }
            page.records.append(record.json)
            if page.records.count == request.limit {
                page.token = record.token
                break
            }
        }
        return page
    }

    private func check(_ token: ChangeToken) throws(RPCError) -> Int64 {
        guard token.library == library, token.sequence >= oldest, token.sequence <= head else {
            throw Refusal.tokenExpired.error(
                "fetch again",
                ["head": .string(self.token.description), "oldest": .string(current.oldest.description)]
            )
        }
        return token.sequence
    }

    fileprivate func records(after token: ChangeToken) async throws(RPCError) -> [ChangeRecord] {
        while try check(token) == head {
            let (signal, sink) = AsyncStream.makeStream(of: Void.self)
            waiting.append(sink)
            for await _ in signal {}
            if Task.isCancelled { throw .cancelled("stopped") }
        }
        return Array(records.filter { $0.sequence > token.sequence }.prefix(100))
    }
}

struct FakeCatalogHandler: RequestHandler {
    let catalog: FakeCatalog

    @concurrent
    func handle(_ request: IncomingRequest, notifier: Notifier) async throws(RPCError) -> Reply {
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .token: return Reply(await catalog.current.json)
        case .since(let since): return Reply(try await catalog.page(since).json)
        case .follow(let follow):
            var token = follow.token ?? .none
            if follow.token == nil { token = await catalog.token }
            while true {
                let records = try await catalog.records(after: token)
                guard let last = records.last else { continue }
                token = last.token
                try await notifier.notify(
                    ChangesFollow.notification,
                    ["records": .array(records.map(\.json)), "token": .string(token.description)]
                )
            }
        default: throw Refusal.methodNotFound.error("not here")
        }
    }
}

let testLibrary = String(repeating: "ab", count: 16)
let otherLibrary = String(repeating: "cd", count: 16)

func assetID(_ number: UInt64) -> ObjectID {
    let digits = String(number)
    return ObjectID("a" + String(repeating: "0", count: 26 - digits.count) + digits) ?? .none
}
