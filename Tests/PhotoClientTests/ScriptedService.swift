import Contracts
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import Synchronization
import TestSupport

/// Answers requests as a test says.
struct ScriptedHandler: RequestHandler {
    typealias Script = @Sendable (IncomingRequest, Notifier) async throws(RPCError) -> Reply
    let script: Script

    @concurrent
    func handle(_ request: IncomingRequest, notifier: Notifier) async throws(RPCError) -> Reply {
        try await script(request, notifier)
    }
}

/// A folder with endpoints, and a library that is connected to them.
struct ClientRoom {
    let folder: TemporaryFolder
    let endpoints: ServiceEndpoints
    let library: PhotoLibrary
    static let logger = Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }

    static func with<Value>(_ body: (ClientRoom) async throws -> Value) async throws -> Value {
        let folder = try TemporaryFolder("client")
        func address(_ name: String) throws -> EndpointAddress { try EndpointAddress("ipc://\(folder.file(name))") }
        let endpoints = ServiceEndpoints(
            catalog: try address("catalog"),
            thumbnailer: try address("thumbnailer"),
            editor: try address("editor"),
            changeBroker: try address("broker"),
            feed: try address("feed"),
            edits: try address("edits")
        )
        var limits = MessagingLimits()
        limits.reconnectIntervalMax = .milliseconds(100)
        let library = try PhotoLibrary(endpoints: endpoints, client: "test", limits: limits, logger: logger)
        do {
            let value = try await body(ClientRoom(folder: folder, endpoints: endpoints, library: library))
            await library.close()
            return value
        } catch {
            await library.close()
            throw error
        }
    }

    /// Serves at an address while the body runs; what is under way at the end is cut off.
    func serving<Value: Sendable>(
        _ address: EndpointAddress,
        _ script: @escaping ScriptedHandler.Script,
        while body: @Sendable () async throws -> Value
    ) async throws -> Value {
        let thread = try PollThread(name: "test-server")
        var limits = MessagingLimits()
        limits.drainTimeout = .zero
        let server = try RequestServer(
            address: address,
            thread: thread,
            limits: limits,
            logger: Self.logger,
            handler: ScriptedHandler(script: script)
        )
        return try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { await server.run() }
            do {
                let value = try await body()
                group.cancelAll()
                await thread.shutdown()
                return value
            } catch {
                group.cancelAll()
                await thread.shutdown()
                throw error
            }
        }
    }
}

/// A list that tasks add to.
final class Noted<Element: Sendable>: Sendable {
    private let elements = Mutex<[Element]>([])

    /// - Returns: how many there are now
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
