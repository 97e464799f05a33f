import JSONValue
import Synchronization

/// Counts the memory that requests take, of one connection or of a service, in bytes.
///
/// The servers of one service share one, so that its bound holds for all of them together.
public final class RequestMemory: Sendable {
    private let bytes = Atomic(0)

    public init() {}

    /// What is taken at the moment.
    public var bytesInUse: Int { bytes.load(ordering: .relaxed) }

    fileprivate func add(_ count: Int) { bytes.wrappingAdd(count, ordering: .relaxed) }
}

/// The memory that one request takes, given back when its last holder lets go of it.
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

    /// Reserves memory for a message; nil where the connection or the service has none left.
    ///
    /// Called on the poll thread, and nothing else adds messages, so that what is looked at stays true.
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

    /// Adds the values that were read from a JSON frame: they are there already, so nothing is refused, but further
    /// messages may be.
    func addValues(of envelope: Envelope, frameBytes: Int) {
        guard case .request(let request) = envelope else { return }
        // Walking along a small one costs more than it tells.
        let count = frameBytes <= 4096 ? 12 * frameBytes : JSON.object(request.params).heapBytes
        bytes.wrappingAdd(count, ordering: .relaxed)
        connection.add(count)
        service.add(count)
    }
}

extension JSON {
    /// About what the value takes on the heap, in bytes.
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
    /// Up to 15 bytes stand in the value itself.
    fileprivate var heapBytes: Int { utf8.count < 16 ? 0 : 32 + utf8.count }
}
