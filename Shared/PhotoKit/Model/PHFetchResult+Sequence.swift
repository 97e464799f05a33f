import JSONValue
import PhotoModel

/// A fetch result of objects of any class.
protocol AnyFetchResult {
    /// - Throws: the reason why one of the objects cannot be read
    func identifiers() throws(RPCError) -> [ObjectID]
}

extension PHFetchResult: AnyFetchResult {}

// MARK: - Loops

// Swift's algorithms for collections expect `count` objects, and stop the program if there are fewer. The common ones
// are replaced here by versions that end where a loop ends; the others, such as slices, use the subscript.
extension PHFetchResult: RandomAccessCollection {
    public var startIndex: Int { 0 }
    public var endIndex: Int { count }

    /// The same as ``firstObject``.
    public var first: ObjectType? { firstObject }
    /// The same as ``lastObject``.
    public var last: ObjectType? { lastObject }

    /// Always 0, because a loop may end before it has returned all objects.
    public var underestimatedCount: Int { 0 }

    /// Returns an iterator that ends before the first object that cannot be read; ``error`` then has the reason.
    public func makeIterator() -> Iterator { Iterator(result: self) }

    /// The position of a loop in a fetch result.
    public struct Iterator: IteratorProtocol {
        let result: PHFetchResult
        var index = 0

        /// Returns the next object; nil after the last one, and if the library refuses the request.
        public mutating func next() -> ObjectType? {
            guard index < result.count, let object = result.readableObject(index) else {
                index = result.count
                return nil
            }
            index += 1
            return object
        }
    }

    /// Returns the results of a closure for the objects that a loop would return.
    public func map<T, E: Error>(_ transform: (ObjectType) throws(E) -> T) throws(E) -> [T] {
        var mapped: [T] = []
        mapped.reserveCapacity(count)
        for object in self { mapped.append(try transform(object)) }
        return mapped
    }

    /// Returns the objects that a loop would return, for `Array(result)`.
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

        /// The position of a loop, with the remaining objects of its page.
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
