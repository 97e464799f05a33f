import Basics
import Contracts
import Glibc
import Hosting
import JSONValue
import Storage
import Synchronization
import Video

/// The exported files, and those that are being encoded. The finished files are kept within a byte budget; the least
/// recently used ones are removed.
final class VideoExportFiles: Sendable {
    private struct State {
        /// For each file that is being encoded, the microseconds of video that were exported so far.
        var progress: [VideoExportPlan: Int64] = [:]
        var files: [VideoExportPlan: ExportedVideo] = [:]
        var order: LRUIndex<VideoExportPlan>
        var completed = 0
        var failed = 0
    }

    private let exporter: VideoExporter
    private let state: Mutex<State>

    init(exporter: VideoExporter) {
        self.exporter = exporter
        state = Mutex(State(order: LRUIndex(budget: exporter.maxBytes)))
    }

    /// Returns the file if it is finished, and marks it as used.
    func file(_ plan: VideoExportPlan) -> ExportedVideo? {
        state.withLock { state in
            state.order.touch(plan)
            return state.files[plan]
        }
    }

    /// Returns true if the file is finished and was not removed.
    func contains(_ plan: VideoExportPlan) -> Bool { state.withLock { $0.files[plan] != nil } }

    /// Returns the microseconds of video that were exported so far; nil if the file is not being encoded.
    func progress(_ plan: VideoExportPlan) -> Int64? { state.withLock { $0.progress[plan] } }

    /// Encodes a file.
    func encode(_ request: VideoExportPlan) async -> Result<ExportedVideo, RPCError> {
        var plan = request
        plan.file = nil
        if let file = file(plan) { return .success(file) }
        state.withLock { [plan] in $0.progress[plan] = 0 }
        let outcome: Result<ExportedVideo, RPCError>
        do throws(RPCError) {
            let file = try await exporter.export(request) { [self, plan] time in
                state.withLock { state in
                    if state.progress[plan] != nil { state.progress[plan] = time }
                }
            }
            outcome = .success(file)
        } catch {
            outcome = .failure(error)
        }
        state.withLock { state in
            state.progress[plan] = nil
            guard case .success(let file) = outcome else {
                state.failed += 1
                return
            }
            state.completed += 1
            state.files[plan] = file
            for evicted in state.order.insert(plan, cost: file.size) { state.files[evicted] = nil }
        }
        return outcome
    }

    var metrics: JSONObject {
        state.withLock { state in
            [
                "files": JSON(state.files.count), "bytes": .int(state.order.total), "budget": .int(state.order.budget),
                "completed": JSON(state.completed), "failed": JSON(state.failed),
            ]
        }
    }
}

/// A finished export. Its file has no name, so the system frees its space when its last descriptor is closed.
final class ExportedVideo: Sendable {
    let size: Int64
    let pixelWidth: Int
    let pixelHeight: Int
    /// The order of the bytes in which a player can begin before it has the whole file.
    let layout: VideoStreams.Layout
    private let descriptor: Int32

    /// - Parameter descriptor: an MPEG-4 file with untrusted content; closed by `deinit`
    init(descriptor: Int32, size: Int64, pixelWidth: Int, pixelHeight: Int) {
        self.descriptor = descriptor
        self.size = size
        self.pixelWidth = pixelWidth
        self.pixelHeight = pixelHeight
        let order = FastStart(size: Int(size)) { offset, count in Self.bytes(of: descriptor, Int64(offset), count) }
        var description = VideoDescription()
        description.isFastStart = order.isPossible
        if let moved = order.moved { (description.movedTo, description.movedFrom) = (moved.position, moved.original) }
        layout = VideoStreams.Layout(description: description, index: order.moved?.index, range: 0..<size)
    }

    deinit { close(descriptor) }

    /// Reads bytes of the stream; blocks.
    func read(offset: Int64, count: Int) throws(StorageError) -> Bytes {
        try VideoStreams.read(layout, offset: offset, count: count) { start, length throws(StorageError) in
            Self.bytes(of: descriptor, start, length)
        }
    }

    private static func bytes(of descriptor: Int32, _ offset: Int64, _ count: Int) -> Bytes {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, used in
            used = max(0, pread(descriptor, buffer.baseAddress, count, off_t(offset)))
        }
    }
}
