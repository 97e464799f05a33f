import Contracts
import Foundation
import JSONValue
import PhotoModel
import Synchronization

/// The change requests of one change block, in the order in which they were created.
final class ChangeRecorder: Sendable {
    /// The recorder of the change block in which the task was started. The block may have returned.
    @TaskLocal private static var inherited: ChangeRecorder?

    /// The recorder of the running change block; nil outside of one.
    static var current: ChangeRecorder? { inherited.flatMap { $0.state.withLock { $0.hasEnded } ? nil : $0 } }

    private struct State {
        var requests: [any RecordedChange] = []
        var created: Set<String> = []
        /// The reason why the objects of a request cannot be read.
        var failure: RPCError?
        /// True once the block has returned. A task that was started in it may still run.
        var hasEnded = false
    }

    private let state = Mutex(State())
    let connection: LibraryConnection

    init(_ connection: LibraryConnection) { self.connection = connection }

    /// Runs a change block and returns its requests.
    ///
    /// - Throws: `nested_change` inside of another block (T-29); the reason why the objects of a request cannot be read
    static func record(
        _ connection: LibraryConnection,
        _ block: () -> Void
    ) throws(RPCError) -> [any RecordedChange] {
        guard current == nil else { throw nested }
        let recorder = ChangeRecorder(connection)
        $inherited.withValue(recorder) { block() }
        let (requests, failure) = recorder.state.withLock { state in
            state.hasEnded = true
            return (state.requests, state.failure)
        }
        if let failure { throw failure }
        return requests
    }

    static var nested: RPCError {
        ErrorCode.nestedChange.error("a change block cannot perform changes; put all requests into one block")
    }

    /// Adds a request to the running block. Outside of one it stops the program, as PhotoKit does (S-75).
    static func add(_ request: any RecordedChange) {
        guard let current else {
            preconditionFailure("change requests must be created inside the block of performChanges")
        }
        current.state.withLock { $0.requests.append(request) }
    }

    /// Returns a placeholder with a new identifier, which the catalog gives to the object that is created.
    static func makePlaceholder(_ kind: ObjectKind) -> PHObjectPlaceholder {
        var random = SystemRandomNumberGenerator()
        let id = ObjectID(kind, milliseconds: Int64(Date().timeIntervalSince1970 * 1000), using: &random)
        current?.state.withLock { _ = $0.created.insert(id.text) }
        return PHObjectPlaceholder(id, nil, history: nil)
    }

    /// Returns the identifiers of objects.
    ///
    /// If they are a fetch result that cannot be read to its end, the whole block fails with the reason: otherwise the
    /// request would name only the objects before the failure.
    static func identifiers<Object: PHObject>(_ objects: some Sequence<Object>) -> [ObjectID] {
        guard let result = objects as? any AnyFetchResult else { return objects.map(\.id) }
        do throws(RPCError) {
            return try result.identifiers()
        } catch {
            current?.state.withLock { $0.failure = error }
            return []
        }
    }

    /// Returns references to objects, as ``identifiers(_:)`` does. An object that this block creates is referred to by
    /// its placeholder.
    static func references<Object: PHObject>(_ objects: some Sequence<Object>) -> [ObjectReference] {
        let created = current?.state.withLock { $0.created } ?? []
        return identifiers(objects).map { id in created.contains(id.text) ? .placeholder(id.text) : .id(id) }
    }
}

/// A change request of a block.
protocol RecordedChange: AnyObject, Sendable {
    /// True if the request attaches adjustment data, which cannot be uploaded.
    var hasAdjustmentData: Bool { get }

    /// Returns the corresponding requests of the protocol, and adds the bytes of the files to the attachments and
    /// uploads.
    func wireRequests(_ files: inout ChangeFiles) async throws(RPCError) -> [ChangeRequest]
}

extension RecordedChange {
    var hasAdjustmentData: Bool { false }
}
