import DequeModule

/// A queue that is round-robin between sources, so that a source with many elements does not delay the others.
///
/// Elements of one source are dequeued in the order in which they were enqueued.
public struct FairQueue<Source: Hashable & Sendable, Element> {
    private var elements: [Source: Deque<Element>] = [:]
    /// Sources with elements, the next one first.
    private var order: Deque<Source> = []
    /// The number of elements.
    public private(set) var count = 0

    /// Creates an empty queue.
    public init() {}

    /// True if there are no elements.
    public var isEmpty: Bool { count == 0 }

    /// Returns the number of elements of a source.
    public func count(of source: Source) -> Int { elements[source]?.count ?? 0 }

    /// Appends an element to those of its source.
    public mutating func append(_ element: Element, from source: Source) {
        if elements[source, default: []].isEmpty { order.append(source) }
        elements[source, default: []].append(element)
        count += 1
    }

    /// Inserts an element before the first one of its source that satisfies a condition, else after all of them.
    ///
    /// - Parameter isNext: true to give the source the next turn; otherwise a source without elements comes last
    public mutating func insert(
        _ element: Element,
        from source: Source,
        isNext: Bool = false,
        before condition: (Element) -> Bool
    ) {
        let isNew = elements[source, default: []].isEmpty
        let index = elements[source]?.firstIndex(where: condition) ?? count(of: source)
        elements[source, default: []].insert(element, at: index)
        count += 1
        if isNext {
            if !isNew, let position = order.firstIndex(of: source) { order.remove(at: position) }
            order.prepend(source)
        } else if isNew {
            order.append(source)
        }
    }

    /// Removes the next elements that satisfy a condition, without changing whose turn it is: afterwards the next
    /// element, if there is one, does not satisfy it.
    public mutating func skip(while condition: (Element) -> Bool) {
        while let source = order.first {
            while let element = elements[source]?.first, condition(element) {
                elements[source]?.removeFirst()
                count -= 1
            }
            guard elements[source]?.isEmpty != false else { return }
            elements[source] = nil
            order.removeFirst()
        }
    }

    /// Removes all elements that satisfy a condition.
    public mutating func removeAll(where condition: (Element) -> Bool) {
        for source in order { elements[source]?.removeAll(where: condition) }
        order.removeAll { elements[$0]?.isEmpty != false }
        elements = elements.filter { !$0.value.isEmpty }
        count = elements.values.reduce(0) { $0 + $1.count }
    }

    /// Removes and returns the first element of a source that satisfies a condition; nil if there is none.
    public mutating func remove(from source: Source, where condition: (Element) -> Bool) -> Element? {
        guard let index = elements[source]?.firstIndex(where: condition) else { return nil }
        let element = elements[source]?.remove(at: index)
        if elements[source]?.isEmpty == true {
            elements[source] = nil
            if let position = order.firstIndex(of: source) { order.remove(at: position) }
        }
        count -= 1
        return element
    }

    /// Removes and returns the next element if it satisfies a condition; nil if it does not, or if the queue is empty.
    public mutating func popFirst(where condition: (Element) -> Bool = { _ in true }) -> Element? {
        guard let source = order.first, let element = elements[source]?.first, condition(element) else { return nil }
        order.removeFirst()
        elements[source]?.removeFirst()
        if elements[source]?.isEmpty == true { elements[source] = nil } else { order.append(source) }
        count -= 1
        return element
    }
}

extension FairQueue: Sendable where Element: Sendable {}
