import JSONValue
import Synchronization

/// The memory reserved for one request, released with the last reference.
final class RequestReservation: Sendable {
    private let quota: MemoryQuota
    private let bytes: Atomic<Int>

    private init(_ bytes: Int, _ quota: MemoryQuota) {
        self.quota = quota
        self.bytes = Atomic(bytes)
    }

    deinit { quota.add(-bytes.load(ordering: .relaxed)) }

    /// Reserves memory for a message; nil if a limit would be exceeded.
    ///
    /// - Parameter quota: that of the connection
    static func make(_ bytes: Int, of quota: MemoryQuota, limits: MessagingLimits) -> RequestReservation? {
        guard quota.tryAdd(bytes, isLarge: bytes > limits.parseInlineBytes) else { return nil }
        return RequestReservation(bytes, quota)
    }

    /// Adds the memory that a waiting request uses besides its frames.
    func addWaiting() { change(by: 512) }

    /// Counts the values that were parsed from a JSON frame instead of the frame, which is released.
    ///
    /// - Returns: false if the values exceed a limit, and there are other requests; they are not counted then
    func replaceFrame(of frameBytes: Int, by params: JSONObject, limits: MessagingLimits) -> Bool {
        // The values of a small frame are estimated: traversing them would cost more than an exact size is worth.
        guard frameBytes > 4096 else {
            change(by: 11 * frameBytes)
            return true
        }
        change(by: -frameBytes)
        let values = JSON.object(params).heapBytes
        let own = bytes.load(ordering: .relaxed)
        guard quota.tryAdd(values, isLarge: frameBytes > limits.parseInlineBytes, besides: own) else { return false }
        bytes.wrappingAdd(values, ordering: .relaxed)
        return true
    }

    private func change(by count: Int) {
        bytes.wrappingAdd(count, ordering: .relaxed)
        quota.add(count)
    }
}

extension MessagingLimits {
    /// The error of a request for which there is no memory now.
    var requestMemoryExceeded: RPCError {
        .busy(
            "open requests may use at most \(requestBytesPerConnection) bytes per connection, "
                + "\(requestBytesPerKey) per key and \(requestBytes) per service; wait for responses"
        )
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
