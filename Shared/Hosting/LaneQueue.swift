import Contracts
import Dispatch
import JSONValue
import Storage
import Synchronization

/// The queue of a lane and the threads that serve it.
final class LaneQueue: Sendable {
    typealias Step = @Sendable () -> Void

    private struct State {
        var waiting = FairQueue<WorkSource, Step>()
        /// Serial dispatch queues, each used as one thread that exists only while it has work.
        var idle: [DispatchQueue]
        var jobs = 0
        /// The running and waiting jobs of the sources that have some.
        var jobsBySource: [WorkSource: Int] = [:]
    }

    private let limit: Int
    private let state: Mutex<State>

    init(_ lane: BlockingIOExecutor.Lane, limit: Int) {
        self.limit = limit
        state = Mutex(State(idle: (0..<lane.threads).map { DispatchQueue(label: "files.\(lane.rawValue).\($0)") }))
    }

    var figures: JSON {
        let (jobs, waiting) = state.withLock { ($0.jobs, $0.waiting.count) }
        return ["jobs": JSON(jobs), "waiting": JSON(waiting)]
    }

    /// Takes a place for a job. A source that has few always gets one, so that another source with many does not
    /// exclude it.
    func begin(_ source: WorkSource) throws(RPCError) {
        let isFull = state.withLock { state in
            let own = state.jobsBySource[source, default: 0]
            guard state.jobs < limit || own < WorkSource.reservedPlaces(of: limit) else { return true }
            state.jobs += 1
            state.jobsBySource[source] = own + 1
            return false
        }
        if isFull {
            throw ErrorCode.busy.error(
                "\(limit) file operations are already running or waiting; retry later",
                ["limit": JSON(limit)]
            )
        }
    }

    func end(_ source: WorkSource) {
        state.withLock { state in
            state.jobs -= 1
            let others = state.jobsBySource[source, default: 1] - 1
            state.jobsBySource[source] = others == 0 ? nil : others
        }
    }

    func append(_ step: @escaping Step, from source: WorkSource) {
        let thread = state.withLock { state in
            state.waiting.append(step, from: source)
            return state.idle.popLast()
        }
        guard let thread else { return }
        thread.async { [self] in work(on: thread) }
    }

    /// Runs waiting steps until the queue is empty.
    private func work(on thread: DispatchQueue) {
        while true {
            let next = state.withLock { state in
                let step = state.waiting.popFirst()
                if step == nil { state.idle.append(thread) }
                return step
            }
            guard let next else { return }
            next()
        }
    }
}
