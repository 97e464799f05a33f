import Basics
import CProcess
import Glibc
import JSONValue
import Logging

/// A slot of the pool: a thread that keeps one worker running and gives it jobs. A worker that the pool can do without
/// ends when it has had no job for a while, and the next job of the slot starts another one.
///
/// The thread runs as long as the pool. The workers' parent death signal depends on this thread, so if the service dies
/// its workers are killed.
struct WorkerSlot {
    private let pool: WorkerPool
    private let index: Int
    private let wakeup: EventDescriptor

    /// How long a worker may take until it reports that it is ready, in seconds.
    private static let startSeconds = 10
    private static let firstPause = 100_000 as Int64
    private static let longestPause = 5_000_000 as Int64

    static func start(pool: WorkerPool, index: Int, wakeup: EventDescriptor) -> Bool {
        final class Box {
            let slot: WorkerSlot
            init(_ slot: WorkerSlot) { self.slot = slot }
        }
        let box = Unmanaged.passRetained(Box(WorkerSlot(pool: pool, index: index, wakeup: wakeup)))
        let result = safelight_thread(
            "worker-\(index)",
            { context in
                guard let context else { return }
                Unmanaged<Box>.fromOpaque(context).takeRetainedValue().slot.live()
            },
            box.toOpaque()
        )
        if result != 0 { box.release() }
        return result == 0
    }

    private enum End {
        /// It completed its number of jobs, was killed during one, or crashed: replace it at once.
        case replaced
        /// It ended before its first job.
        case diedIdle(String)
        /// It had no job for a while.
        case idle
        case stopping
    }

    private func live() {
        defer { pool.slotDidEnd(index) }
        var failures = 0
        while pool.isRunning {
            let problem: String
            do throws(WorkerStartError) {
                let worker = try RunningWorker(pool.command, logger: pool.logger)
                defer { worker.end() }
                try worker.awaitReady(until: .now().after(seconds: Self.startSeconds), wakeup: wakeup) {
                    !pool.isRunning
                }
                pool.slotIsReady(index, pid: worker.pid, worker.confinement)
                switch serve(worker) {
                case .replaced:
                    failures = 0
                    continue
                case .idle:
                    failures = 0
                    worker.end()
                    while pool.isRunning, !pool.needsWorker(index) { wakeup.wait() }
                    continue
                case .stopping: return
                case .diedIdle(let reason): problem = reason
                }
            } catch {
                problem = error.reason
            }
            guard pool.isRunning else { return }
            failures += 1
            pool.slotDidFail(index, failures: failures, problem: problem)
            pause(after: failures)
        }
    }

    // Waits with exponential backoff; a stopping pool wakes it.
    private func pause(after failures: Int) {
        let pause = min(Self.longestPause, Self.firstPause << Int64(min(failures - 1, 10)))
        let until = MonotonicTime.now().after(microseconds: pause)
        while pool.isRunning, MonotonicTime.now() < until {
            wakeup.wait(until: until)
        }
    }

    private func serve(_ worker: RunningWorker) -> End {
        var jobs = 0
        while true {
            switch pool.next(for: index) {
            case .stop:
                return .stopping
            case .wait:
                switch worker.waitForWakeup(wakeup, until: pool.idleDeadline(of: index)) {
                // There is a job, or the pool stops.
                case .wakeup: continue
                case .outOfTime:
                    guard pool.releaseWorker(of: index) else { continue }
                    return .idle
                case .ended: break
                }
                pool.slotDidLoseWorker(index, wasRetired: false)
                let reason = worker.describeEnd()
                pool.logger.warning("idle worker ended", metadata: ["worker.end": "\(reason)"])
                return jobs == 0 ? .diedIdle(reason) : .replaced
            case .job(let ticket):
                jobs += 1
                guard perform(ticket, on: worker) else {
                    pool.slotDidLoseWorker(index, wasRetired: false)
                    return .replaced
                }
                if jobs >= pool.limits.jobsPerWorker {
                    pool.slotDidLoseWorker(index, wasRetired: true)
                    return .replaced
                }
            }
        }
    }

    /// Runs a job on a worker; returns whether the worker can run another.
    private func perform(_ ticket: WorkerPool.Ticket, on worker: RunningWorker) -> Bool {
        let deadline = MonotonicTime.now().after(seconds: ticket.wallSeconds)
        let outcome = worker.perform(ticket.job, until: deadline, wakeup: wakeup) {
            let (isCancelled, stop) = pool.interruption(of: index)
            return (isCancelled, MonotonicTime(microseconds: stop))
        }
        switch outcome {
        case .answered(let result):
            pool.finish(ticket, on: index, result)
            return true
        case .notBegun where ticket.requeueCount < pool.count:
            pool.requeue(ticket, from: index)
            return false
        case .notBegun:
            pool.finish(ticket, on: index, .failure(.unavailable("the worker ended before the job was begun")))
        case .cancelled:
            worker.end()
            pool.finish(ticket, on: index, .failure(.cancelled))
        case .outOfTime:
            let phase = worker.phaseOfDelay(seconds: ticket.wallSeconds)
            worker.end()
            let isStopping = !pool.isRunning
            pool.finish(
                ticket,
                on: index,
                .failure(
                    isStopping
                        ? .unavailable("the service is stopping")
                        : .timedOut(seconds: ticket.wallSeconds, phase: phase)
                )
            )
        case .broken(let error):
            pool.finish(ticket, on: index, .failure(failure(error, worker)))
        }
        return false
    }

    private func failure(_ error: WorkerChannelError, _ worker: RunningWorker) -> WorkerFailure {
        worker.end(isDying: error == .closed)
        let failure: WorkerFailure
        switch (error, worker.status) {
        case (.tooLarge, _): failure = .resultTooLarge(limit: pool.limits.resultBytes)
        case (.malformed(let reason), _): failure = .malformedResult(reason, phase: worker.phaseOfEnd)
        case (_, .signal(SIGXCPU)?):
            failure = .timedOut(seconds: pool.limits.cpuSeconds, phase: worker.phaseOfExhaustion)
        // It closed its socket without exiting.
        case (_, .signal(let number)?) where worker.wasKilled:
            failure = .crashed(signal: number, phase: worker.phaseOfEnd)
        case (_, .signal(SIGKILL)?), (_, .signal(SIGTERM)?): failure = .killed
        case (_, .signal(let number)?): failure = .crashed(signal: number, phase: worker.phaseOfEnd)
        case (_, .code(let code)?): failure = .exited(code: code, phase: worker.phaseOfEnd)
        case (_, nil): failure = .unavailable("\(error)")
        }
        pool.logger.warning(
            "worker failed a job",
            metadata: ["error": "\(failure)", "worker.pid": "\(worker.pid)"]
        )
        return failure
    }
}
