import Basics
import Contracts
import DequeModule
import JSONValue
import Messaging
import PhotoModel

/// Implements `fetch.keys`: reads a result's keys at one sequence, then sends them as byte credits arrive.
struct KeyDelivery: Sendable {
    let store: LibraryStore
    /// The maximum bytes of keys in one notification.
    var chunkBytes = 1 << 20
    /// The maximum bytes of the keys of one request; they stay in memory until they are sent.
    var maxBytes = 1 << 30
    /// The memory of the keys of all requests.
    var memory = KeyMemory()

    private struct Keys: Sendable {
        let reservation: KeyMemory.Reservation
        var chunks: Deque<Bytes> = []
        var token = ChangeToken.none
        var count = 0
        var objectWasDeleted = false
        var scope: [ObjectID]?
        /// The list of the limited grant, and the assets that are in its moments if the result depends on these.
        var granted: [Bytes] = []
    }

    /// - Parameters:
    ///   - isService: true for the request of a service, whose keys have memory of their own
    ///   - view: the view of an identity with a limited grant; nil for the whole library
    func keys(
        _ request: FetchKeys,
        _ context: RequestContext,
        isService: Bool,
        view: LimitedView? = nil
    ) async throws -> Reply {
        guard context.acceptsNotifications else {
            throw FetchError.keysWithoutNotifications
        }
        let fetch = try Fetch(request.fetch)
        guard fetch.kind.isFollowable else {
            throw FetchError.noKeys
        }
        guard !fetch.dependsOnLocalFiles else { throw FetchError.localFiles }
        var keys = try await read(fetch, request, view, context.identity, isService)
        while let chunk = keys.chunks.popFirst() {
            try await context.notifier.notify(FetchKeys.notification, [:], attachments: [chunk])
            keys.reservation.remove(chunk.count)
        }
        var result = FetchKeys.Result(token: keys.token, count: keys.count)
        result.objectWasDeleted = keys.objectWasDeleted
        result.scope = keys.scope
        return Reply(result.json, attachments: keys.granted)
    }

    private func read(
        _ requested: Fetch,
        _ request: FetchKeys,
        _ view: LimitedView?,
        _ identity: String,
        _ isService: Bool
    ) async throws -> Keys {
        let (chunkBytes, maxBytes, maxCount) = (chunkBytes, maxBytes, request.maxCount)
        return try await store.read { [memory] reader in
            let (head, token) = try FetchService.resolve(request.token, reader)
            var keys = Keys(reservation: memory.reservation(of: identity, isService: isService), token: token)
            let fetch = try view?.fetch(requested, reader, at: token.sequence, head, isFollowed: true) ?? requested
            func keyedResult(at sequence: Int64) throws -> KeyedResult? {
                try KeyedResult(fetch, HistoricalState(reader: reader, sequence: sequence, head: head), view)
            }
            if let granted = fetch.granted { keys.granted = [ObjectID.bytes(of: granted.ids)] }
            if let view, fetch.dependsOnViewMoments {
                let results = ResultReader(reader: reader, head: head, cache: ResultCache(maxBytes: 0))
                let members = try view.momentMembers(results, at: token.sequence)
                keys.granted.append(MomentMember.bytes(of: members))
            }
            guard let result = try keyedResult(at: token.sequence) else {
                guard let since = request.since else { throw CatalogError.notFound(fetch) }
                let (_, earlier) = try FetchService.resolve(since, reader)
                // A moment that is empty now may have existed earlier and may exist again.
                guard try fetch.kind.isOfMomentObject || keyedResult(at: earlier.sequence) != nil else {
                    throw CatalogError.notFound(fetch)
                }
                keys.objectWasDeleted = true
                keys.scope = fetch.kind.needsScope ? [] : nil
                return keys
            }
            if let scope = try result.state.scope(of: fetch) {
                guard scope.count <= FetchKeys.maxScope else {
                    throw FetchError.scopeTooLarge(limit: FetchKeys.maxScope)
                }
                keys.scope = Array(scope)
            }
            var chunk: Bytes = []
            var total = 0
            func endChunk() throws {
                guard !chunk.isEmpty else { return }
                try keys.reservation.add(chunk.count)
                keys.chunks.append(chunk)
                chunk = []
            }
            try result.each { key in
                keys.count += 1
                total += key.bytes.count + 4
                guard keys.count <= maxCount, total <= maxBytes else {
                    throw FetchError.tooManyKeys(limit: maxCount, maxBytes: maxBytes)
                }
                if chunk.count + key.bytes.count + 4 > chunkBytes { try endChunk() }
                let size = UInt32(truncatingIfNeeded: key.bytes.count)
                for shift in stride(from: 24, through: 0, by: -8) {
                    chunk.append(UInt8(truncatingIfNeeded: size >> UInt32(shift)))
                }
                chunk.append(contentsOf: key.bytes)
            }
            try endChunk()
            return keys
        }
    }
}

/// A result at one sequence number, ignoring the offset and limit of its fetch.
private struct KeyedResult {
    let fetch: Fetch
    let state: HistoricalState
    /// The collections or lists as a limited view shows them; nil for all other results.
    private let viewed: [PhotoCollection]?

    /// Returns nil if the object of the fetch does not exist at that sequence number.
    init?(_ fetch: Fetch, _ state: HistoricalState, _ view: LimitedView?) throws {
        (self.fetch, self.state) = (fetch, state)
        let results = ResultReader(reader: state.reader, head: state.head, cache: ResultCache(maxBytes: 0))
        guard let view, fetch.kind.entityClass != .asset else {
            viewed = nil
            let exists = try view?.hasObject(of: fetch, results, at: state.sequence) ?? state.hasObject(of: fetch)
            guard exists else { return nil }
            return
        }
        guard let objects = try view.collections(fetch, results, at: state.sequence) else { return nil }
        viewed = objects
    }

    /// Calls a closure with each key.
    func each(_ visit: (ResultKey) throws -> Void) throws {
        if let viewed {
            for object in viewed { try visit(fetch.resultKey(of: object)) }
            return
        }
        guard state.sequence < state.head.sequence else {
            guard try state.reader.fetchKeys.each(fetch, visit) else { throw CatalogError.notFound(fetch) }
            return
        }
        guard case .assets(let source) = fetch.kind else {
            for object in try state.collections(of: fetch.whole) { try visit(fetch.resultKey(of: object)) }
            return
        }
        // The change-broker requests an earlier state only when a folder has moved, so it is not cached.
        let touched = try state.earlierEntities()
        let rows = try state.result(of: fetch.whole, touched)
        var earlier: [Int64: Asset] = [:]
        let assets = state.reader.assets
        for (id, asset) in touched.assets {
            guard let asset else { continue }
            if let row = try assets.rowNumber(of: id) ?? assets.departedRowNumber(of: id) { earlier[row] = asset }
        }
        var remaining = rows[...]
        func visitEarlier() throws {
            while let row = remaining.first, let asset = earlier[row] {
                try visit(fetch.resultKey(of: asset))
                remaining.removeFirst()
            }
        }
        // The keys of all other rows have not changed since.
        try state.reader.fetchKeys.each(rows.filter { earlier[$0] == nil }, of: fetch, source) { _, key in
            try visitEarlier()
            try visit(key)
            remaining.removeFirst()
        }
        try visitEarlier()
    }
}

extension FetchKind {
    /// True if the fetch refers to a moment, or to a list of moments: these are deleted with their last asset and may
    /// exist again.
    fileprivate var isOfMomentObject: Bool {
        guard let object else { return false }
        return DerivedCollection(object) != nil || MomentList(object) != nil
    }
}
