import Basics
import JSONValue
import Synchronization

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
