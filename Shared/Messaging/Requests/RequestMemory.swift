import Basics
import JSONValue
import Synchronization

/// Counts the memory used by the requests of one connection or of a service, in bytes.
///
/// The servers of one service share one instance, so that its bound applies to all of them together.
public final class RequestMemory: Sendable {
    private let bytes = Atomic(0)

    /// Makes a counter with no bytes in use.
    public init() {}

    /// The bytes in use now.
    public var bytesInUse: Int { bytes.load(ordering: .relaxed) }

    func add(_ count: Int) { bytes.wrappingAdd(count, ordering: .relaxed) }
}

extension JSON {
    /// The approximate size of the value on the heap, in bytes.
    var heapBytes: Int {
        switch self {
        case .null, .bool, .int, .double: 0
        case .string(let text): text.heapBytes
        case .array(let elements):
            elements.reduce(32 + elements.capacity * MemoryLayout<JSON>.stride) { $0 + $1.heapBytes }
        case .object(let object):
            object.members.reduce(32 + object.members.capacity * MemoryLayout<(name: String, value: JSON)>.stride) {
                $0 + $1.name.heapBytes + $1.value.heapBytes
            } + (object.count < 16 ? 0 : 64 * object.count)
        }
    }
}

extension String {
    /// Strings of up to 15 bytes are stored inline.
    fileprivate var heapBytes: Int { utf8.count < 16 ? 0 : 32 + utf8.count }
}
