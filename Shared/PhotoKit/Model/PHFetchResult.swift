public import Foundation
import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// The result of a fetch at one point in the history: `PHFetchResult` (S-25 to S-29).
///
/// It contains the fetch and a token, not the objects: pages of 256 objects are read when they are needed, and the last
/// eight are cached. Count, order and values never change. Any thread may use it.
///
/// Reading a page that is not cached blocks the caller for as long as the library is not available, as do searches and
/// counts. The library may also refuse: access was revoked, the library was closed, or its history, which is retained
/// for thirty days unless configured, no longer includes the token. Then ``error`` is the reason: loops end before the
/// first object that cannot be read, searches find nothing, and counts are 0. Only ``object(at:)`` and the subscript,
/// which must return an object, stop the program. The asynchronous ``objects(in:)`` and ``objects()`` throw instead,
/// and do not block.
public final class PHFetchResult<ObjectType: PHObject>: Sendable {
    let connection: LibraryConnection
    let source: Source
    let interest: Interest?
    let wantsIncrementalChangeDetails: Bool
    /// The number of objects; 0 if the fetch failed.
    public let count: Int
    private let failure: ReadFailure
    private let pages = Mutex(Pages())

    enum Source: Sendable {
        case remote(FetchDescription, ChangeToken)
        case objects([ObjectType])
    }

    private struct Pages {
        var objects: [Int: [ObjectType]] = [:]
        /// The numbers of the cached pages, the most recently used at the end.
        var order: [Int] = []
        var mediaTypes: [Int: Int]?
    }

    static var pageSize: Int { 256 }
    private static var maxPages: Int { 8 }

    /// The reason why the fetch, or a later read, search or count, failed; nil if none failed.
    ///
    /// If it is nil after a loop, the loop returned all objects. The last reason remains after the library answers
    /// again. PhotoKit has no counterpart: it raises an exception, or returns nothing.
    public var error: PHPhotosError? { failure.error }

    /// Creates a result of objects that are in memory.
    init(_ objects: [ObjectType], _ connection: LibraryConnection, error: PHPhotosError? = nil) {
        self.connection = connection
        source = .objects(objects)
        interest = nil
        wantsIncrementalChangeDetails = false
        count = objects.count
        failure = ReadFailure(error)
    }

    init(
        _ fetch: FetchDescription,
        _ token: ChangeToken,
        count: Int,
        _ connection: LibraryConnection,
        _ interest: Interest,
        isIncremental: Bool,
        first: [ObjectType]? = nil
    ) {
        self.connection = connection
        source = .remote(fetch, token)
        self.interest = interest
        wantsIncrementalChangeDetails = isIncremental
        self.count = count
        failure = ReadFailure()
        if let first { cache(first, at: 0) }
    }

    // MARK: Fetching

    static func fetch(
        _ description: FetchDescription,
        _ options: PHFetchOptions?,
        _ connection: LibraryConnection = PHPhotoLibrary.shared().connection
    ) -> PHFetchResult {
        do {
            let fetch = try options?.applied(to: description) ?? description
            let isIncremental = options?.wantsIncrementalChangeDetails ?? true
            return try connection.wait { () async throws(RPCError) in
                try await result(of: fetch, isIncremental, connection)
            }
        } catch {
            return PHFetchResult([], connection, error: PHPhotosError(error))
        }
    }

    static func fetchAsync(
        _ description: FetchDescription,
        _ options: PHFetchOptions?,
        _ connection: LibraryConnection = PHPhotoLibrary.shared().connection
    ) async throws -> PHFetchResult {
        let fetch = try options?.applied(to: description) ?? description
        do {
            return try await result(of: fetch, options?.wantsIncrementalChangeDetails ?? true, connection)
        } catch {
            throw PHPhotosError(error)
        }
    }

    static func result(
        of fetch: FetchDescription,
        _ isIncremental: Bool,
        _ connection: LibraryConnection
    ) async throws(RPCError) -> PHFetchResult {
        let interest = Interest(fetch)
        // The interest is registered before the read, so that no change between the result and its first notification
        // is missed.
        connection.interests.insert(interest)
        let page = try await connection.page(fetch, nil, from: 0, count: pageSize, interest)
        return PHFetchResult(
            fetch,
            page.token,
            count: page.count,
            connection,
            interest,
            isIncremental: isIncremental,
            first: page.objects.compactMap { $0 as? ObjectType }
        )
    }

    // MARK: Reading objects

    private func cache(_ objects: [ObjectType], at page: Int) {
        pages.withLock { pages in
            pages.objects[page] = objects
            pages.order.removeAll { $0 == page }
            pages.order.append(page)
            if pages.order.count > Self.maxPages { pages.objects[pages.order.removeFirst()] = nil }
        }
    }

    private func cached(_ page: Int) -> [ObjectType]? {
        pages.withLock { pages in
            guard let objects = pages.objects[page] else { return nil }
            if pages.order.last != page {
                pages.order.removeAll { $0 == page }
                pages.order.append(page)
            }
            return objects
        }
    }

    private func readPage(_ page: Int) async throws(RPCError) -> [ObjectType] {
        guard case .remote(let fetch, let token) = source else { return [] }
        let read = try await connection.page(fetch, token, from: page * Self.pageSize, count: Self.pageSize, interest)
        let objects = read.objects.compactMap { $0 as? ObjectType }
        cache(objects, at: page)
        return objects
    }

    /// Returns the object at an index, which must be in `0..<count`.
    ///
    /// If the object is not cached and the library refuses the request, this stops the program: there is no object to
    /// return. ``objects(at:)`` ends before it, and ``objects(in:)`` throws.
    public func object(at index: Int) -> ObjectType {
        do throws(RPCError) {
            return try read(index)
        } catch {
            // A failed precondition would not print the reason in release builds.
            fatalError("PHFetchResult: object \(index) cannot be read: \(PHPhotosError(error))")
        }
    }

    /// Returns the object at an index, and waits for its page if that is not cached.
    private func read(_ index: Int) throws(RPCError) -> ObjectType {
        precondition(index >= 0 && index < count, "PHFetchResult: index \(index) is not in 0..<\(count)")
        if case .objects(let objects) = source { return objects[index] }
        let (page, position) = index.quotientAndRemainder(dividingBy: Self.pageSize)
        if let objects = cached(page), position < objects.count { return objects[position] }
        let objects: [ObjectType] = try connection.waitForAnswer { () async throws(RPCError) in
            try await self.readPage(page)
        }
        guard position < objects.count else { throw Self.shortPage }
        return objects[position]
    }

    private static var shortPage: RPCError {
        ErrorCode.internalError.error("the library returned a page that is too short")
    }

    /// Returns the object at an index; nil if the library refuses; ``error`` then has the reason.
    func readableObject(_ index: Int) -> ObjectType? {
        do throws(RPCError) {
            return try read(index)
        } catch {
            failure.record(error, connection)
            return nil
        }
    }

    /// Returns the objects at some indexes. If one cannot be read, only those before it; ``error`` then has the reason.
    func readableObjects(at indexes: some Sequence<Int>) -> [ObjectType] {
        var objects: [ObjectType] = []
        for index in indexes {
            guard let object = readableObject(index) else { break }
            objects.append(object)
        }
        return objects
    }

    /// Returns the identifiers of all objects.
    ///
    /// - Throws: the reason why one of them cannot be read
    func identifiers() throws(RPCError) -> [ObjectID] {
        var ids: [ObjectID] = []
        ids.reserveCapacity(count)
        for index in 0..<count { ids.append(try read(index).id) }
        return ids
    }

    /// Waits for an answer to a request; nil if the library refuses; ``error`` then has the reason.
    private func answer<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(RPCError) -> Value
    ) -> Value? {
        do throws(RPCError) {
            return try connection.waitForAnswer(work)
        } catch {
            failure.record(error, connection)
            return nil
        }
    }

    /// Returns the object at an index; see ``object(at:)``.
    public subscript(index: Int) -> ObjectType { object(at: index) }

    /// The first object; nil if there is none, or if it cannot be read; ``error`` then has the reason.
    public var firstObject: ObjectType? { count > 0 ? readableObject(0) : nil }
    /// The last object; nil if there is none, or if it cannot be read; ``error`` then has the reason.
    public var lastObject: ObjectType? { count > 0 ? readableObject(count - 1) : nil }

    /// Returns objects in ascending order of their indexes. If one cannot be read, only those before it; ``error`` then
    /// has the reason.
    public func objects(at indexes: IndexSet) -> [ObjectType] { readableObjects(at: indexes) }

    /// Returns the objects at a range of indexes, for code that must not block.
    ///
    /// - Throws: a ``PHPhotosError``, for example ``PHPhotosError/Code/persistentChangeTokenExpired``
    public func objects(in range: Range<Int>) async throws -> [ObjectType] {
        precondition(
            range.lowerBound >= 0 && range.upperBound <= count,
            "PHFetchResult: \(range) is not in 0..<\(count)"
        )
        if case .objects(let objects) = source { return Array(objects[range]) }
        var found: [ObjectType] = []
        var index = range.lowerBound
        while index < range.upperBound {
            let page = index / Self.pageSize
            let objects: [ObjectType]
            do {
                objects = if let cached = cached(page) { cached } else { try await readPage(page) }
            } catch {
                throw PHPhotosError(error)
            }
            let start = page * Self.pageSize
            let end = Swift.min(range.upperBound, start + objects.count)
            guard end > index else {
                throw PHPhotosError(Self.shortPage)
            }
            found += objects[index - start..<end - start]
            index = end
        }
        return found
    }

    // MARK: Searching

    /// Returns true if the result has an object, as ``index(of:)`` finds it.
    public func contains(_ anObject: ObjectType) -> Bool { index(of: anObject) != NSNotFound }

    /// Returns the index of an object; `NSNotFound` if it is not in the result, or if the library refuses to search;
    /// ``error`` then has the reason. The library searches, not this process.
    public func index(of anObject: ObjectType) -> Int { index(of: anObject, in: NSRange(location: 0, length: count)) }

    /// Returns the index of an object within a range of indexes, as ``index(of:)`` does.
    public func index(of anObject: ObjectType, in range: NSRange) -> Int {
        precondition(range.location >= 0 && range.length >= 0, "PHFetchResult: \(range) is not a range of indexes")
        // An empty result needs no request, which the library would refuse if the album was deleted.
        guard range.location < count, range.length > 0 else { return NSNotFound }
        let indexes = range.location..<range.location + Swift.min(range.length, count - range.location)
        switch source {
        case .objects(let objects): return objects[indexes].firstIndex(of: anObject) ?? NSNotFound
        case .remote(let fetch, let token):
            let request = FindInFetch(
                fetch: fetch,
                token: token,
                ids: [anObject.id],
                from: indexes.lowerBound,
                count: indexes.count
            )
            let found: [JSON]? = answer { [connection] () async throws(RPCError) in
                try await connection.askCatalog(request).indexes
            }
            return found?.first?.intValue.map { Int($0) } ?? NSNotFound
        }
    }

    /// Returns the number of assets of a media type; 0 if the library refuses to count; ``error`` then has the reason.
    /// The library counts, once for all types.
    public func countOfAssets(with mediaType: PHAssetMediaType) -> Int {
        guard count > 0 else { return 0 }
        switch source {
        case .objects(let objects): return objects.count { ($0 as? PHAsset)?.mediaType == mediaType }
        case .remote(let fetch, let token):
            if let counts = pages.withLock({ $0.mediaTypes }) { return counts[mediaType.rawValue] ?? 0 }
            let request = FetchCounts(fetches: [fetch], token: token, countsMediaTypes: true)
            let counted: [JSONObject]? = answer { [connection] () async throws(RPCError) in
                try await connection.askCatalog(request).byMediaType
            }
            guard let countByName = counted?.first else { return 0 }
            var counts: [Int: Int] = [:]
            for (name, value) in countByName.members {
                if let type = MediaType(rawValue: name) { counts[type.number] = Int(value.intValue ?? 0) }
            }
            pages.withLock { [counts] in $0.mediaTypes = counts }
            return counts[mediaType.rawValue] ?? 0
        }
    }

    // MARK: Enumerating

    /// Calls a block with each object and its index, in order, until the block sets `stop`, or until an object cannot
    /// be read; ``error`` then has the reason.
    public func enumerateObjects(_ block: (ObjectType, Int, UnsafeMutablePointer<ObjCBool>) -> Void) {
        enumerate(0..<count, block)
    }

    /// Calls a block with each object, in reverse order with `.reverse`. `.concurrent` has no effect.
    public func enumerateObjects(
        options opts: NSEnumerationOptions = [],
        using block: (ObjectType, Int, UnsafeMutablePointer<ObjCBool>) -> Void
    ) {
        if opts.contains(.reverse) { enumerate((0..<count).reversed(), block) } else { enumerate(0..<count, block) }
    }

    /// Calls a block with the objects at some indexes, in reverse order with `.reverse`.
    public func enumerateObjects(
        at indexes: IndexSet,
        options opts: NSEnumerationOptions = [],
        using block: (ObjectType, Int, UnsafeMutablePointer<ObjCBool>) -> Void
    ) {
        if opts.contains(.reverse) { enumerate(indexes.reversed(), block) } else { enumerate(indexes, block) }
    }

    private func enumerate(
        _ indexes: some Sequence<Int>,
        _ block: (ObjectType, Int, UnsafeMutablePointer<ObjCBool>) -> Void
    ) {
        var stop = ObjCBool(false)
        for index in indexes {
            guard let object = readableObject(index) else { return }
            block(object, index, &stop)
            if stop.boolValue { return }
        }
    }
}
