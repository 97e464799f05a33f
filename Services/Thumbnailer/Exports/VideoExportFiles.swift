import Contracts
import JSONValue
import Synchronization

/// The exported files within a budget of bytes, the least recently used of which are removed, and those that are being
/// encoded.
final class VideoExportFiles: Sendable {
    private struct State {
        /// The microseconds of output so far, of the files that are being encoded.
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

    /// Returns the file if it is finished.
    func file(_ plan: VideoExportPlan) -> ExportedVideo? {
        state.withLock { state in
            state.order.touch(plan)
            return state.files[plan]
        }
    }

    /// Returns true if the file is finished and was not removed.
    func holds(_ plan: VideoExportPlan) -> Bool { state.withLock { $0.files[plan] != nil } }

    /// The microseconds of output so far; nil if the file is not being encoded.
    func progress(_ plan: VideoExportPlan) -> Int64? { state.withLock { $0.progress[plan] } }

    /// Encodes a file.
    func make(_ request: VideoExportPlan) async -> Result<ExportedVideo, RPCError> {
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
