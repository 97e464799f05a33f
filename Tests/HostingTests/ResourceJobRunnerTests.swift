import ArgumentParser
import Foundation
import Glibc
import JSONValue
import Synchronization
import Testing

@testable import Hosting

/// Tests of jobs on stored bytes, and of reports of bytes that crash or hang workers.
@Suite(.timeLimit(.minutes(5)))
struct ResourceJobRunnerTests {
    private final class FaultRecorder: Sendable {
        private let faults = Mutex<[ResourceJobRunner.WorkerFault]>([])
        var all: [ResourceJobRunner.WorkerFault] { faults.withLock { $0 } }
        func record(_ fault: ResourceJobRunner.WorkerFault) { faults.withLock { $0.append(fault) } }
    }

    private func failure(of job: WorkerJob, by runner: ResourceJobRunner) async -> WorkerFailure? {
        do throws(WorkerFailure) {
            _ = try await runner.run(job, over: "d")
            return nil
        } catch {
            return error
        }
    }

    /// Returns the process that runs a job that names a file; nil before it runs.
    private func process(ofJob file: String) -> Int64? {
        (try? FileManager.default.destinationOfSymbolicLink(atPath: file + ".pid")).flatMap { Int64($0) }
    }

    @Test func `a job whose worker is killed is run once more by another worker`() async throws {
        let recorder = FaultRecorder()
        let folder = TemporaryFolder()
        let started = "\(folder.path)/started"
        try await PythonPool(count: 2).run { pool in
            let runner = ResourceJobRunner(pool) { recorder.record($0) }
            try await withThrowingTaskGroup { group in
                let job = WorkerJob(method: "sleep", params: ["seconds": 60, "started": .string(started)])
                group.addTask { try await runner.run(job, over: "d") }
                // A slot is busy before its worker has the job, and the end of a worker without its job is no crash.
                try await waitUntil(pool) { _ in access(started, F_OK) == 0 }
                let busy = try #require(process(ofJob: started))
                let pids = pool.metrics()["pids"]?.arrayValue?.compactMap(\.intValue) ?? []
                let idle = try #require(pids.first { $0 != busy })
                // Kills both: one that never had a job, and then the worker that has it. In another order the first
                // could be given the job before it ends, and after two deaths the job fails.
                kill(Int32(idle), SIGKILL)
                while isAlive(idle) { try await Task.sleep(for: .milliseconds(5)) }
                kill(Int32(busy), SIGKILL)
                let result = try await group.next()
                #expect(result?.result == [:])
            }
            #expect(pool.metrics()["completed"] == 1)
            #expect(pool.metrics()["crashed"] == 1)
        }
        #expect(recorder.all.isEmpty)
    }

    @Test func `bytes that end two workers are reported and not tried again`() async throws {
        let recorder = FaultRecorder()
        try await PythonPool().run { pool in
            let runner = ResourceJobRunner(pool) { recorder.record($0) }
            let crash = WorkerJob(method: "crash", params: ["signal": "SIGSEGV"])
            #expect(await failure(of: crash, by: runner) == .crashed(signal: SIGSEGV))
            #expect(pool.metrics()["crashed"] == 2)
            #expect(await failure(of: WorkerJob(method: "echo"), by: runner) == nil)
        }
        #expect(recorder.all == [.init(digest: "d", failure: .crashed(signal: SIGSEGV), failures: 2)])
    }

    @Test func `bytes that hang a worker are reported at once, and job errors are not reported`() async throws {
        let recorder = FaultRecorder()
        var limits = WorkerLimits()
        limits.cpuSeconds = 1
        limits.resultBytes = 1000
        try await PythonPool(limits: limits).run { pool in
            let runner = ResourceJobRunner(pool) { recorder.record($0) }
            let hang = WorkerJob(method: "spin")
            #expect(await failure(of: hang, by: runner) == .timedOut(seconds: 1))
            #expect(pool.metrics()["timedOut"] == 1)
            #expect(await failure(of: WorkerJob(method: "refuse"), by: runner)?.name == "unsupported_format")
            let lots = WorkerJob(method: "lots", params: ["bytes": 1001])
            #expect(await failure(of: lots, by: runner) == .resultTooLarge(limit: 1000))
        }
        #expect(recorder.all == [.init(digest: "d", failure: .timedOut(seconds: 1), failures: 1)])
    }

    @Test(
        .serialized,
        arguments: [
            (
                "crash", ["signal": "SIGSEGV", "phases": ["reading", "working"]],
                .crashed(signal: SIGSEGV, phase: .working)
            ),
            ("crash", ["signal": "SIGABRT", "phases": []], .crashed(signal: SIGABRT, phase: .received)),
            ("crash", ["signal": "SIGKILL"], .killed),
            ("exit", ["phases": ["reading", "working"]], .exited(code: 5, phase: .working)),
            ("spin", ["phases": ["reading", "working"]], .timedOut(seconds: 1, phase: .working)),
            ("spin", ["phases": ["reading", "working", "reading"]], .timedOut(seconds: 1, phase: .working)),
            ("spin", ["phases": []], .timedOut(seconds: 1, phase: .received)),
            ("sleep", ["seconds": 60], .timedOut(seconds: 4, phase: .received)),
        ] as [(String, JSON, WorkerFailure)]
    )
    func `failures outside of reading are not attributed to the bytes`(
        method: String,
        params: JSON,
        expected: WorkerFailure
    ) async throws {
        let recorder = FaultRecorder()
        var limits = WorkerLimits()
        limits.cpuSeconds = 1
        // A second of CPU time may take long on a busy machine; the job `sleep` uses no CPU time.
        limits.wallSeconds = method == "sleep" ? 4 : 60
        try await PythonPool(limits: limits).run { pool in
            let runner = ResourceJobRunner(pool) { recorder.record($0) }
            #expect(await failure(of: WorkerJob(method: method, params: params), by: runner) == expected)
            // The next job on the same bytes is accepted.
            #expect(await failure(of: WorkerJob(method: "echo"), by: runner) == nil)
        }
        #expect(recorder.all.isEmpty)
    }

    @Test func `of two failures only the one while reading is attributed to the bytes`() async throws {
        let recorder = FaultRecorder()
        let folder = TemporaryFolder()
        try await PythonPool().run { pool in
            let runner = ResourceJobRunner(pool) { recorder.record($0) }
            let job = WorkerJob(method: "die", params: ["path": .string(folder.path + "/once")])
            #expect(await failure(of: job, by: runner) == .crashed(signal: SIGSEGV))
        }
        #expect(recorder.all.map(\.failures) == [1])
    }

    @Test func `worker limits are set by flag or variable and validated`() throws {
        let plain = try WorkerOptions.parse([])
        #expect(try plain.resolve(WorkerLimits()) { _ in nil }.wallSeconds == WorkerOptions.defaultSeconds)
        let set = try plain.resolve(WorkerLimits()) {
            ["SAFELIGHT_JOB_SECONDS": "3", "SAFELIGHT_WORKER_MEMORY_MIB": "512"][$0]
        }
        #expect((set.wallSeconds, set.cpuSeconds, set.memoryBytes) == (3, 3, 512 << 20))
        let flag = try WorkerOptions.parse(["--job-seconds", "7"]).resolve(WorkerLimits()) {
            $0 == "SAFELIGHT_JOB_SECONDS" ? "9" : nil
        }
        #expect(flag.wallSeconds == 7)
        #expect(throws: HostingError.self) { try plain.resolve(WorkerLimits()) { _ in "0" } }
        #expect(throws: HostingError.self) { try plain.resolve(WorkerLimits()) { _ in "many" } }
    }
}
