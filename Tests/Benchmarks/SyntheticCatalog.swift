import Contracts
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoModel
import Synchronization
import TestSupport

/// A catalog for measuring the change-broker: it has only a history, to which the benchmark adds records.
final class SyntheticCatalog: RequestHandler {
    /// A favorite change of one asset, like that of a camera's photo.
    let template: ChangeRecord
    private let library = String(repeating: "ab", count: 16)
    private let state = Mutex(State())
    private let thread: PollThread
    private let logger = Logger(label: "synthetic", factory: { _ in SwiftLogNoOpLogHandler() })

    private struct State {
        var head: Int64 = first
        var waiting: [CheckedContinuation<Void, Never>] = []
        var followers = 0
    }

    /// Sequences have the same number of digits throughout a run, so that all messages have one size.
    private static let first: Int64 = 1_000_000_000
    /// The number of records in one notification, about as many as the catalog sends.
    private static let batchSize: Int64 = 128

    init() throws {
        var random = SeededRandom(seed: 4)
        var asset = Asset(id: ObjectID(.asset, milliseconds: 1_700_000_000_000, using: &random))
        asset.mediaType = .image
        asset.contentType = "public.jpeg"
        asset.pixelWidth = 4032
        asset.pixelHeight = 3024
        asset.creationDate = 1_700_000_000_000_000
        asset.modificationDate = 1_700_000_000_000_000
        asset.originalFilename = "IMG_0001.JPG"
        var after = asset
        after.isFavorite = true
        var record = ChangeRecord(
            sequence: Self.first,
            library: library,
            date: 1_700_000_000_000_000,
            origin: ChangeOrigin(identity: "uid:0", client: "benchmark")
        )
        record.assets = [EntityChange(before: asset, after: after)]
        template = record
        thread = try PollThread(name: "synthetic")
    }

    /// Serves until the task is cancelled.
    func run(at address: EndpointAddress) async throws {
        let server = try RequestServer(address: address, thread: thread, logger: logger, handler: self)
        await server.run()
    }

    func shutdown() async { await thread.shutdown() }

    /// Commits `count` records at once.
    func grow(by count: Int) {
        let waiting = state.withLock { state in
            state.head += Int64(count)
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    var followers: Int { state.withLock { $0.followers } }
    var head: Int64 { state.withLock { $0.head } }

    /// The bytes of the feed's live message about a record.
    var liveFrame: [UInt8] { template.bytes.dropLast() + Array(",\"previous\":\(Self.first - 1)}".utf8) }

    func handle(_ request: IncomingRequest, _ context: RequestContext) async throws(RPCError) -> Reply {
        switch try CatalogRequest(method: request.method, params: request.params) {
        case .token:
            let head = ChangeToken(library: library, sequence: state.withLock { $0.head })
            return Reply(
                CurrentToken.Result(token: head, oldest: ChangeToken(library: library, sequence: Self.first)).json
            )
        case .health:
            return Reply(
                Health.Result(service: "catalog", version: "synthetic", isHealthy: true, problems: [], sequence: head)
                    .json
            )
        case .follow(let follow): return try await sendRecords(after: follow.token, context.notifier)
        default: throw .methodNotFound("the synthetic catalog does not know \(request.method)")
        }
    }

    /// Sends the records after a token, and those that are added later.
    private func sendRecords(after token: ChangeToken?, _ notifier: Notifier) async throws(RPCError) -> Reply {
        var position = token?.sequence ?? head
        // Encoded once: the benchmark measures delivery, not encoding.
        var record = template.bytes
        state.withLock { $0.followers += 1 }
        while !Task.isCancelled {
            await waitForRecords(after: position)
            let last = min(head, position + Self.batchSize)
            var params = Array("{\"records\":[".utf8)
            params.reserveCapacity((record.count + 1) * Int(last - position) + 256)
            for sequence in position + 1...max(position + 1, last) {
                LiveFrame.write(sequence, to: LiveFrame.sequence, in: &record)
                if sequence > position + 1 { params.append(UInt8(ascii: ",")) }
                params += record
            }
            position = last
            params += Array("],\"token\":\"\(ChangeToken(library: library, sequence: position))\"}".utf8)
            try await notifier.notify(ChangesFollow.notification, encoded: params)
        }
        return Reply(FollowEnd(token: ChangeToken(library: library, sequence: position)).json)
    }

    /// Waits until the history has records after a position.
    private func waitForRecords(after position: Int64) async {
        await withCheckedContinuation { continuation in
            let hasRecords = state.withLock { state in
                if state.head <= position { state.waiting.append(continuation) }
                return state.head > position
            }
            if hasRecords { continuation.resume() }
        }
    }
}
