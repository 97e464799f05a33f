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

/// The memory reserved for one request, released with the last reference.
final class RequestReservation: Sendable {
    private let connection: RequestMemory
    private let service: RequestMemory
    private let bytes: Atomic<Int>

    private init(_ bytes: Int, _ connection: RequestMemory, _ service: RequestMemory) {
        self.connection = connection
        self.service = service
        self.bytes = Atomic(bytes)
        connection.add(bytes)
        service.add(bytes)
    }

    deinit {
        let bytes = bytes.load(ordering: .relaxed)
        connection.add(-bytes)
        service.add(-bytes)
    }

    /// Reserves memory for a message; nil if the bound of the connection or of the service would be exceeded.
    ///
    /// Called on the poll thread only, which alone adds messages, so that check and addition cannot race.
    static func make(
        _ bytes: Int,
        connection: RequestMemory,
        service: RequestMemory,
        limits: MessagingLimits
    ) -> RequestReservation? {
        let most = bytes <= limits.parseInlineBytes ? limits.requestBytes : limits.requestBytes / 4 * 3
        guard connection.bytesInUse.addingClamped(bytes) <= limits.requestBytesPerConnection,
            service.bytesInUse.addingClamped(bytes) <= most
        else { return nil }
        return RequestReservation(bytes, connection, service)
    }

    /// Adds what a waiting request uses besides its bytes.
    func addWaiting() {
        let count = 512
        bytes.wrappingAdd(count, ordering: .relaxed)
        connection.add(count)
        service.add(count)
    }

    /// Adds the values that were parsed from a JSON frame. They exist already, so nothing is refused here, but further
    /// messages may be.
    func addValues(of envelope: Envelope, frameBytes: Int) {
        guard case .request(let request) = envelope else { return }
        // Traversing a small value costs more than the estimate is worth.
        let count = frameBytes <= 4096 ? 12 * frameBytes : JSON.object(request.params).heapBytes
        bytes.wrappingAdd(count, ordering: .relaxed)
        connection.add(count)
        service.add(count)
    }
}

// MARK: - The size of values

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
