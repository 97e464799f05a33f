import Contracts
import JSONValue
import Messaging
import PhotoModel
import Synchronization
import TestSupport

/// A service whose responses a test defines.
struct ScriptedHandler: RequestHandler {
    typealias Script = @Sendable (IncomingRequest, RequestContext) async throws(RPCError) -> Reply
    let script: Script

    @concurrent
    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        try await script(request, context)
    }
}

extension ClientFixture {
    /// Serves at an address while the body runs.
    func serving<Value: Sendable>(
        _ address: EndpointAddress,
        _ script: @escaping ScriptedHandler.Script,
        while body: @Sendable () async throws -> Value
    ) async throws -> Value {
        try await serving(address, ScriptedHandler(script: script), while: body)
    }
}

/// A list to which tasks append concurrently.
final class RecordedList<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    /// - Returns: the number of elements
    @discardableResult
    func add(_ element: Element) -> Int {
        elements.withLock { list in
            list.append(element)
            return list.count
        }
    }

    var all: [Element] { elements.withLock { $0 } }
}

let testLibrary = String(repeating: "ab", count: 16)

func token(_ sequence: Int64, library: String = testLibrary) -> ChangeToken {
    ChangeToken(library: library, sequence: sequence)
}

func record(_ sequence: Int64, library: String = testLibrary, touching ids: [ObjectID] = []) -> ChangeRecord {
    var record = ChangeRecord(
        sequence: sequence,
        library: library,
        date: sequence * 1000,
        origin: ChangeOrigin(identity: "uid:1")
    )
    record.assets = ids.map { EntityChange(before: nil, after: Asset(id: $0, revision: Revision(sequence))) }
    return record
}

func assetID(_ number: UInt64) -> ObjectID {
    var digits = String(number)
    digits = String(repeating: "0", count: 26 - digits.count) + digits
    return ObjectID("a" + digits) ?? .none
}
