import Logging
import PhotoClient
public import Foundation
import Contracts
import JSONValue
import PhotoModel
import Synchronization

/// The result of a fetch at one moment: `PHFetchResult` (S-25 to S-29).
///
/// It holds the fetch and a token, not the objects: pages of 256 objects are read when they are needed, and the last eight
/// are kept. Count, order and values never change. Any thread may use it.
///
/// A page that is not in memory is read by blocking the caller, for as long as the library is not reachable; so are searches
/// and counts. The asynchronous ``objects(in:)`` throws instead. The token is valid for as long as the library keeps its
/// history, thirty days unless configured. Reading after that, or without access, stops the program, as an index out of range
/// does; so does reading a page that is not in memory after the library was closed.
public final class PHFetchResult<ObjectType: PHObject>: Sendable {
    let connection: LibraryConnection
    let source: Source
    let interest: Interest?
    let wantsIncrementalChangeDetails: Bool
    /// The number of objects; 0 if the fetch failed.
    public let count: Int
    /// Why the fetch failed; nil if it did not. PhotoKit has none: it raises an exception, or returns nothing.
    public let error: PHPhotosError?
    private let pages = Mutex(Pages())

    enum Source: Sendable {
        case remote(FetchDescription, ChangeToken)
        case objects([ObjectType])
    }

    private struct Pages {
        var objects: [Int: [ObjectType]] = [:]
        /// The numbers of the pages in memory, the last used one at the end.
        var order: [Int] = []
        var mediaTypes: [Int: Int]?
    }

    private static var pageSize: Int { 256 }
    private static var maxPages: Int { 8 }

    /// A result of objects that are in memory.
    init(_ objects: [ObjectType], _ connection: LibraryConnection, error: PHPhotosError? = nil) {
        self.connection = connection
        source = .objects(objects)
        interest = nil
        wantsIncrementalChangeDetails = false
        count = objects.count
        self.error = error
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
        error = nil
        if let first { keep(first, at: 0) }
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

    static func fetching(
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
        // Before it is read, so that no change falls between the result and the first notification about it.
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

    private func keep(_ objects: [ObjectType], at page: Int) {
        pages.withLock { pages in
            pages.objects[page] = objects
            pages.order.removeAll { $0 == page }
            pages.order.append(page)
            if pages.order.count > Self.maxPages { pages.objects[pages.order.removeFirst()] = nil }
        }
    }

    private func kept(_ page: Int) -> [ObjectType]? {
        pages.withLock { pages in
            guard let objects = pages.objects[page] else { return nil }
            if pages.order.last != page {
                pages.order.removeAll { $0 == page }
                pages.order.append(page)
            }
            return objects
        }
    }

    private func read(_ page: Int) async throws(RPCError) -> [ObjectType] {
        guard case .remote(let fetch, let token) = source else { return [] }
        let read = try await connection.page(fetch, token, from: page * Self.pageSize, count: Self.pageSize, interest)
        let objects = read.objects.compactMap { $0 as? ObjectType }
        keep(objects, at: page)
        return objects
    }

    /// Returns the object at an index, which must be in `0..<count`.
    public func object(at index: Int) -> ObjectType {
        precondition(index >= 0 && index < count, "PHFetchResult: index \(index) is not in 0..<\(count)")
        if case .objects(let objects) = source { return objects[index] }
        let (page, position) = index.quotientAndRemainder(dividingBy: Self.pageSize)
        if let objects = kept(page), position < objects.count { return objects[position] }
        let objects: [ObjectType] = answer(closed: nil) { () async throws(RPCError) in try await self.read(page) }
        precondition(position < objects.count, "PHFetchResult: the library returned a page that is too short")
        return objects[position]
    }

    /// Waits for an answer about this moment of the library. An error that remains, such as a moment that is older than the
    /// history, stops the program: any value would look like a fact.
    ///
    /// - Parameter closed: the value after the library was closed; nil stops the program then too
    private func answer<Value: Sendable>(
        closed: Value?,
        _ work: @escaping @Sendable () async throws(RPCError) -> Value
    ) -> Value {
        do throws(RPCError) {
            return try connection.waitForAnswer(work)
        } catch {
            if let closed, connection.isClosed.load(ordering: .relaxed) { return closed }
            preconditionFailure("PHFetchResult: \(error)")
        }
    }

    public subscript(index: Int) -> ObjectType { object(at: index) }

    /// The first object; nil if there is none.
    public var firstObject: ObjectType? { count > 0 ? object(at: 0) : nil }
    /// The last object; nil if there is none.
    public var lastObject: ObjectType? { count > 0 ? object(at: count - 1) : nil }

    /// Returns objects in ascending order of their indexes.
    public func objects(at indexes: IndexSet) -> [ObjectType] { indexes.map { object(at: $0) } }

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
                objects = if let kept = kept(page) { kept } else { try await read(page) }
            } catch {
                throw PHPhotosError(error)
            }
            let start = page * Self.pageSize
            let end = Swift.min(range.upperBound, start + objects.count)
            guard end > index else {
                throw PHPhotosError(.internalError, "the library returned a page that is too short")
            }
            found += objects[index - start..<end - start]
            index = end
        }
        return found
    }

    // MARK: Searching

    public func contains(_ anObject: ObjectType) -> Bool { index(of: anObject) != NSNotFound }

    /// Returns the index of an object; `NSNotFound` if it is not in the result. The library searches, not this process.
    public func index(of anObject: ObjectType) -> Int { index(of: anObject, in: NSRange(location: 0, length: count)) }

    public func index(of anObject: ObjectType, in range: NSRange) -> Int {
        switch source {
        case .objects(let objects):
            let end = Swift.min(objects.count, range.location + range.length)
            return objects[Swift.min(range.location, end)..<end].firstIndex(of: anObject) ?? NSNotFound
        case .remote(let fetch, let token):
            let request = FindInFetch(
                fetch: fetch,
                token: token,
                ids: [anObject.id],
                from: range.location,
                count: range.length
            )
            let found: [JSON] = answer(closed: []) { [connection] () async throws(RPCError) in
                try await connection.catalog(request).indexes
            }
            return found.first?.intValue.map { Int($0) } ?? NSNotFound
        }
    }

    /// Returns the number of assets of a media type. The library counts, once for all types.
    public func countOfAssets(with mediaType: PHAssetMediaType) -> Int {
        switch source {
        case .objects(let objects): return objects.count { ($0 as? PHAsset)?.mediaType == mediaType }
        case .remote(let fetch, let token):
            if let counts = pages.withLock({ $0.mediaTypes }) { return counts[mediaType.rawValue] ?? 0 }
            let request = FetchCounts(fetches: [fetch], token: token, byMediaType: true)
            let answers: [JSONObject] = answer(closed: []) { [connection] () async throws(RPCError) in
                try await connection.catalog(request).byMediaType
            }
            guard let named = answers.first else { return 0 }
            var counts: [Int: Int] = [:]
            for (name, value) in named.members {
                if let type = MediaType(rawValue: name) { counts[type.number] = Int(value.intValue ?? 0) }
            }
            pages.withLock { [counts] in $0.mediaTypes = counts }
            return counts[mediaType.rawValue] ?? 0
        }
    }

    // MARK: Enumerating

    /// Calls a block with each object and its index, in order, until the block sets `stop`.
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
            block(object(at: index), index, &stop)
            if stop.boolValue { return }
        }
    }
}

extension PHFetchResult: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { count }
}
