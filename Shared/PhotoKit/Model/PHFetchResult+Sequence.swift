import JSONValue
import PhotoModel

/// A fetch result of objects of any class.
protocol AnyFetchResult {
    /// - Throws: the reason for which one of the objects cannot be read
    func identifiers() throws(RPCError) -> [ObjectID]
}

extension PHFetchResult: AnyFetchResult {}

// MARK: - Loops

// Swift's algorithms for collections expect `count` objects, and stop the program if there are fewer. The most common
// ones are replaced here by versions that end where a loop does; the others, such as slices, use the subscript.
extension PHFetchResult: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    /// As ``firstObject``.
    public var first: ObjectType? { firstObject }
    /// As ``lastObject``.
    public var last: ObjectType? { lastObject }

    /// 0, because a loop may end before it has had all objects.
    public var underestimatedCount: Int { 0 }

    /// Returns an iterator that ends before the first object that cannot be read, for the reason in ``error``.
    public func makeIterator() -> Iterator { Iterator(result: self) }

    /// The position of a loop in a fetch result.
    public struct Iterator: IteratorProtocol {
        let result: PHFetchResult
        var index = 0

        /// Returns the next object; nil after the last one, and if the library refuses the request.
        public mutating func next() -> ObjectType? {
            guard index < result.count, let object = result.readable(index) else {
                index = result.count
                return nil
            }
            index += 1
            return object
        }
    }

    /// Returns the results of a closure for the objects that a loop would have.
    public func map<T, E: Error>(_ transform: (ObjectType) throws(E) -> T) throws(E) -> [T] {
        var mapped: [T] = []
        mapped.reserveCapacity(count)
        for object in self { mapped.append(try transform(object)) }
        return mapped
    }

    /// Returns the objects that a loop would have, for `Array(result)`.
    public func _copyToContiguousArray() -> ContiguousArray<ObjectType> {
        ContiguousArray(IteratorSequence(makeIterator()))
    }
}

// MARK: - Asynchronous loops

extension PHFetchResult {
    /// Returns the objects for a loop that must not block: `for try await photo in photos.objects()`.
    ///
    /// It throws a ``PHPhotosError`` where a loop over the result itself would end early.
    public func objects() -> Objects { Objects(result: self) }

    /// The objects of a fetch result, which are read in pages. Its error is a ``PHPhotosError``.
    public struct Objects: AsyncSequence, Sendable {
        let result: PHFetchResult

        public func makeAsyncIterator() -> Iterator { Iterator(result: result) }

        /// The position of a loop, with the objects of its page that are still to come.
        public struct Iterator: AsyncIteratorProtocol {
            let result: PHFetchResult
            var index = 0
            var page: ArraySlice<ObjectType> = []

            /// Returns the next object; nil after the last one.
            public mutating func next() async throws -> ObjectType? {
                if page.isEmpty, index < result.count {
                    let end = Swift.min(result.count, index + PHFetchResult.pageSize)
                    page = try await result.objects(in: index..<end)[...]
                    index = end
                }
                return page.popFirst()
            }
        }
    }
}
