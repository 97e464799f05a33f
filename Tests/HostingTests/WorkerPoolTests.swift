import CProcess
import Glibc
import JSONValue
import Synchronization
import Testing

@testable import Hosting

@Suite(.timeLimit(.minutes(5)))
struct WorkerPoolTests {
    @Test func `a job returns its params and attachments, small and large`() async throws {
        try await PythonPool().run { pool in
            let attachments: [[UInt8]] = [[1, 2, 3], [], [UInt8](repeating: 7, count: 5_000_000)]
            let result = try await pool.run(
                WorkerJob(method: "echo", params: ["text": "grüße", "n": 3], attachments: attachments)
            )
            #expect(result == WorkerResult(result: ["text": "grüße", "n": 3], attachments: attachments))
        }
    }

    @Test func `descriptors are passed to the worker and stay owned by the caller`() async throws {
        let folder = TemporaryFolder()
        let files = (0..<3).map { open(folder.write("file\($0)", "content \($0)"), O_RDONLY) }
        try await PythonPool().run { pool in
            for _ in 0..<3 {
                let result = try await pool.run(WorkerJob(method: "read", files: files))
                #expect(result.result["files"] == 3)
                #expect(
                    result.attachments.map { String(decoding: $0, as: UTF8.self) } == [
                        "content 0", "content 1", "content 2",
                    ]
                )
            }
        }
        for file in files { #expect(close(file) == 0) }
    }

    @Test(arguments: [("SIGSEGV", SIGSEGV), ("SIGABRT", SIGABRT), ("SIGKILL", SIGKILL)])
    func `a crash fails its job and the next job gets a new worker`(name: String, number: Int32) async throws {
        try await PythonPool().run { pool in
            let job = WorkerJob(method: "crash", params: ["signal": .string(name)])
            // SIGKILL and SIGTERM come from outside and are not attributed to the bytes.
            #expect(await failure(of: job, in: pool) == (number == SIGKILL ? .killed : .crashed(signal: number)))
            let next = try await pool.run(WorkerJob(method: "echo", params: ["a": 1]))
            #expect(next.result == ["a": 1])
            #expect(pool.metrics()["crashed"] == 1)
        }
    }

    @Test func `a worker that exits during a job fails the job`() async throws {
        try await PythonPool().run { pool in
            #expect(await failure(of: WorkerJob(method: "exit"), in: pool) == .exited(code: 5))
            #expect(await failure(of: WorkerJob(method: "close"), in: pool) == .crashed(signal: SIGKILL))
            #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == nil)
        }
    }

    @Test func `a job that hangs is killed at its time limit`() async throws {
        try await PythonPool().run { pool in
            let job = WorkerJob(method: "sleep", params: ["seconds": 60])
            // It used no CPU time, so the timeout is not attributed to reading.
            #expect(await failure(of: job, in: pool, wallSeconds: 1) == .timedOut(seconds: 1, phase: .received))
            #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == nil)
        }
    }

    @Test func `a worker that sends phases without end is killed at its time limit`() async throws {
        try await PythonPool().run { pool in
            let job = WorkerJob(method: "chatter")
            let expected = WorkerFailure.timedOut(seconds: 1, phase: .working)
            #expect(await failure(of: job, in: pool, wallSeconds: 1) == expected)
            #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == nil)
        }
    }

    @Test func `descriptors that a worker sends are closed when it ends`() async throws {
        let folder = TemporaryFolder()
        let path = folder.write("file", "content")
        try await PythonPool().run { pool in
            let job = WorkerJob(method: "smuggle", params: ["path": .string(path)])
            #expect(await failure(of: job, in: pool) == .exited(code: 5, phase: .working))
            #expect(openDescriptors(below: folder) == 0)
        }
    }

    @Test func `a job that exceeds its CPU time is killed by the kernel`() async throws {
        var limits = WorkerLimits()
        limits.cpuSeconds = 1
        try await PythonPool(limits: limits).run { pool in
            #expect(await failure(of: WorkerJob(method: "spin"), in: pool, wallSeconds: 30) == .timedOut(seconds: 1))
        }
    }

    @Test func `a job's own error is returned and the worker keeps running`() async throws {
        try await PythonPool().run { pool in
            let before = try await pool.run(WorkerJob(method: "about")).result["pid"]
            #expect(
                await failure(of: WorkerJob(method: "refuse"), in: pool)
                    == .refused(name: "unsupported_format", message: "not an image")
            )
            let after = try await pool.run(WorkerJob(method: "about")).result["pid"]
            #expect(after == before)
        }
    }

    @Test func `invalid responses fail with a named error`() async throws {
        var limits = WorkerLimits()
        limits.resultBytes = 1000
        try await PythonPool(limits: limits).run { pool in
            guard case .malformedResult = await failure(of: WorkerJob(method: "garbage"), in: pool) else {
                Issue.record("garbage was accepted")
                return
            }
            #expect(await failure(of: WorkerJob(method: "huge"), in: pool) != nil)
            let lots = WorkerJob(method: "lots", params: ["bytes": 1001])
            #expect(await failure(of: lots, in: pool) == .resultTooLarge(limit: 1000))
            #expect(await failure(of: WorkerJob(method: "lots", params: ["bytes": 1000]), in: pool) == nil)
        }
    }

    @Test func `limits hold from the start, and no other descriptor or secret is inherited`() async throws {
        setenv("SAFELIGHT_SECRET_OF_TEST", "1", 1)
        defer { unsetenv("SAFELIGHT_SECRET_OF_TEST") }
        let folder = TemporaryFolder()
        try await PythonPool().run { pool in
            let about = try await pool.run(WorkerJob(method: "about")).result
            // 3 is the descriptor of the folder that it lists.
            #expect(about["descriptors"] == [0, 1, 2, 3])
            #expect(about["noNewPrivileges"] == true)
            // Sanitizers reserve terabytes of address space, so such builds have no memory limit.
            let isSanitized = safelight_is_sanitized() == 1
            #expect(about["memory"] == .int(isSanitized ? -1 : 1_610_612_736))
            #expect(about["files"] == 64)
            #expect(about["fileSize"] == 0)
            #expect(about["core"] == 0)
            #expect(about["environment"]?.arrayValue?.contains("SAFELIGHT_SECRET_OF_TEST") == false)
            let allocate = WorkerJob(method: "allocate", params: ["bytes": 2_000_000_000])
            if !isSanitized {
                #expect(
                    await failure(of: allocate, in: pool) == .refused(name: "memory_exhausted", message: "too much")
                )
            }
            let write = WorkerJob(method: "write", params: ["path": .string(folder.path + "/out")])
            #expect(await failure(of: write, in: pool)?.name == "io_error")
        }
    }

    @Test func `a full queue refuses jobs at once and accepts them again when it has space`() async throws {
        try await PythonPool(queueLimit: 2).run { pool in
            let running = Task { await failure(of: WorkerJob(method: "sleep", params: ["seconds": 60]), in: pool) }
            try await waitUntil(pool) { $0["busy"] == 1 }
            let waiting = (0..<2).map { _ in Task { await failure(of: WorkerJob(method: "echo"), in: pool) } }
            try await waitUntil(pool) { $0["queued"] == 2 }
            #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == .queueFull(limit: 2))
            running.cancel()
            #expect(await running.value == .cancelled)
            for job in waiting { #expect(await job.value == nil) }
            #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == nil)
        }
    }

    @Test func `waiting jobs run in order of priority`() async throws {
        try await PythonPool().run { pool in
            let order = try await withThrowingTaskGroup(of: String.self) { group in
                let first = Task { await failure(of: WorkerJob(method: "sleep", params: ["seconds": 60]), in: pool) }
                try await waitUntil(pool) { $0["busy"] == 1 }
                for (count, priority) in [WorkerPriority.low, .normal, .high].enumerated() {
                    group.addTask {
                        _ = try await pool.run(
                            WorkerJob(method: "sleep", params: ["seconds": 0.05]),
                            priority: priority
                        )
                        return "\(priority)"
                    }
                    try await waitUntil(pool) { $0["queued"] == .int(Int64(count + 1)) }
                }
                first.cancel()
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(order == ["high", "normal", "low"])
        }
    }

    @Test func `a job of another client is next, however many jobs of one client wait`() async throws {
        try await PythonPool().run { pool in
            let order = try await withThrowingTaskGroup(of: String.self) { group in
                let first = Task { await failure(of: WorkerJob(method: "sleep", params: ["seconds": 60]), in: pool) }
                try await waitUntil(pool) { $0["busy"] == 1 }
                for (count, client) in ["many", "many", "many", "one"].enumerated() {
                    group.addTask {
                        try await WorkSource.$current.withValue(.identity(client)) {
                            _ = try await pool.run(WorkerJob(method: "sleep", params: ["seconds": 0.05]))
                        }
                        return client
                    }
                    try await waitUntil(pool) { $0["queued"] == .int(Int64(count + 1)) }
                }
                first.cancel()
                return try await group.reduce(into: []) { $0.append($1) }
            }
            #expect(order == ["many", "one", "many", "many"])
        }
    }

    @Test func `cancelling drops a waiting job and kills a running one`() async throws {
        try await PythonPool().run { pool in
            let running = Task { await failure(of: WorkerJob(method: "sleep", params: ["seconds": 60]), in: pool) }
            try await waitUntil(pool) { $0["busy"] == 1 }
            let waiting = Task { await failure(of: WorkerJob(method: "echo"), in: pool) }
            try await waitUntil(pool) { $0["queued"] == 1 }
            waiting.cancel()
            #expect(await waiting.value == .cancelled)
            #expect(pool.metrics()["queued"] == 0)
            running.cancel()
            #expect(await running.value == .cancelled)
            let early = Task {
                withUnsafeCurrentTask { $0?.cancel() }
                return await failure(of: WorkerJob(method: "echo"), in: pool)
            }
            #expect(await early.value == .cancelled)
            #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == nil)
        }
    }

    @Test func `a worker is replaced after its number of jobs`() async throws {
        var limits = WorkerLimits()
        limits.jobsPerWorker = 3
        try await PythonPool(limits: limits).run { pool in
            var pids: [JSON] = []
            for _ in 0..<7 {
                if let pid = try await pool.run(WorkerJob(method: "about")).result["pid"] { pids.append(pid) }
            }
            #expect(pids[0] == pids[2])
            #expect(pids[2] != pids[3])
            #expect(pids[3] == pids[5])
            #expect(pids[5] != pids[6])
            #expect(pool.metrics()["retired"] == 2)
        }
    }

    @Test func `an idle worker that dies is replaced before the next job`() async throws {
        try await PythonPool().run { pool in
            let about = try await pool.run(WorkerJob(method: "about")).result
            let pid = try #require(about["pid"]?.intValue)
            kill(pid_t(pid), SIGKILL)
            try await waitUntil(pool) { $0["started"] == 2 }
            for _ in 0..<20 { #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == nil) }
            #expect(pool.metrics()["crashed"] == 0)
        }
    }

    @Test(arguments: [0, 1])
    func `workers without jobs end except for those that are kept, and jobs start them again`(keptCount: Int)
        async throws
    {
        try await PythonPool(count: 3, keptWorkers: keptCount, idleTime: .milliseconds(50)).run { pool in
            for round in 1...3 {
                // The worker that is kept may become ready after the others have ended.
                try await waitUntil(pool) { $0["pids"]?.arrayValue?.count == keptCount && $0["idle"] == 3 }
                #expect(pool.metrics()["endedIdle"] == .int(Int64((3 - keptCount) * round)))
                let jobs = (0..<3).map { _ in
                    Task { await failure(of: WorkerJob(method: "sleep", params: ["seconds": 60]), in: pool) }
                }
                try await waitUntil(pool) { $0["busy"] == 3 }
                // Cancelling the jobs ends the three workers, and their slots start others.
                for job in jobs { job.cancel() }
                for job in jobs { #expect(await job.value == .cancelled) }
            }
        }
    }

    @Test func `a job fails with the reason if none of the workers that ended can be started again`() async throws {
        let python = PythonPool(count: 2, keptWorkers: 0, idleTime: .milliseconds(50))
        try await python.run { pool in
            try await waitUntil(pool) { $0["endedIdle"] == 2 }
            python.folder.write("worker.py", "raise SystemExit(3)")
            let echo = WorkerJob(method: "echo")
            #expect(await failure(of: echo, in: pool) == .unavailable("exited with code 3"))
            python.folder.write("worker.py", pythonWorker)
            try await waitUntil(pool) { $0["idle"] != 0 }
            #expect(await failure(of: echo, in: pool) == nil)
        }
    }

    @Test func `output of a worker is logged up to a limit with control characters escaped`() async throws {
        let python = PythonPool()
        try await python.run { pool in _ = try await pool.run(WorkerJob(method: "babble")) }
        let outputLines = python.lines.all.filter { $0.contains("worker output worker") }
        #expect(!outputLines.isEmpty)
        #expect(outputLines.joined().utf8.count < 4 * WorkerLogPipe.bytesPerJob)
        #expect(python.lines.all.allSatisfy { !$0.contains("\u{1b}") })
        #expect(python.lines.all.contains { $0.contains("worker output truncated") })
    }

    @Test func `stopping ends the workers, their child processes, and the jobs`() async throws {
        let python = PythonPool(count: 2)
        try await python.pool.start()
        let child = try await python.pool.run(WorkerJob(method: "fork")).result["child"]?.intValue ?? 0
        #expect(child > 0)
        let pids = python.pool.metrics()["pids"]?.arrayValue?.compactMap(\.intValue) ?? []
        #expect(pids.count == 2)
        let job = Task { await failure(of: WorkerJob(method: "sleep", params: ["seconds": 60]), in: python.pool) }
        try await waitUntil(python.pool) { $0["busy"] == 1 }
        await python.pool.stop(graceSeconds: 0)
        #expect(await job.value == .unavailable("the service is stopping"))
        for pid in pids { #expect(kill(pid_t(pid), 0) == -1) }
        // The child's parent has ended; the child is dead if it does not exist or is a zombie.
        while isAlive(child) { try await Task.sleep(for: .milliseconds(5)) }
        #expect(
            await failure(of: WorkerJob(method: "echo"), in: python.pool) == .unavailable("the service is stopping")
        )
    }

    @Test func `workers end when their service is killed`() async throws {
        let folder = TemporaryFolder()
        let path = folder.path
        folder.write("worker.py", pythonWorker)
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let pool = WorkerPool(
                executable: "/usr/bin/python3",
                arguments: [path + "/worker.py"],
                count: 1,
                logger: LogLines().logger()
            )
            try await pool.start()
            let pid = pool.metrics()["pids"]?.arrayValue?.first?.intValue ?? 0
            let file = open(path + "/pid", O_WRONLY | O_CREAT, 0o600)
            let bytes = Array("\(pid)".utf8)
            _ = write(file, bytes, bytes.count)
            // The service is killed during a job, when its worker does not notice that the socket is closed.
            let job = Task { await failure(of: WorkerJob(method: "spin"), in: pool) }
            try await waitUntil(pool) { $0["busy"] == 1 }
            kill(getpid(), SIGKILL)
            _ = await job.value
        }
        let file = open(path + "/pid", O_RDONLY)
        var buffer = [UInt8](repeating: 0, count: 32)
        let text = String(decoding: buffer[..<max(0, read(file, &buffer, 32))], as: UTF8.self)
        close(file)
        let pid = try #require(Int64(text))
        #expect(pid > 0)
        while isAlive(pid) { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test(arguments: ["die-at-start", "die-idle"])
    func `a worker that fails at start is restarted with backoff, and jobs fail`(argument: String) async throws {
        let python = PythonPool(arguments: [argument])
        do {
            try await python.pool.start()
            for _ in 0..<3 { #expect(await failure(of: WorkerJob(method: "echo"), in: python.pool) != nil) }
            try await waitUntil(python.pool) { ($0["startFailures"]?.intValue ?? 0) >= 3 }
            await python.pool.stop(graceSeconds: 0)
        } catch let error as WorkerFailure {
            #expect(error == .unavailable(argument == "die-idle" ? "exited with code 4" : "exited with code 3"))
        }
        // Fewer than one attempt per 100 ms.
        #expect((python.pool.metrics()["startFailures"]?.intValue ?? 0) < 12)
    }

    @Test func `a pool that is not required runs jobs once its workers can be started`() async throws {
        let python = PythonPool()
        python.folder.write("worker.py", "raise SystemExit(3)")
        try await python.pool.start(isRequired: false)
        #expect((python.pool.metrics()["startFailures"]?.intValue ?? 0) > 0)
        python.folder.write("worker.py", pythonWorker)
        try await waitUntil(python.pool) { $0["idle"] != 0 }
        #expect(await failure(of: WorkerJob(method: "echo"), in: python.pool) == nil)
        await python.pool.stop(graceSeconds: 0)
    }

    @Test func `a pool without a thread for any worker can be started again`() async throws {
        let python = PythonPool(count: 2)
        for _ in 0..<2 {
            python.pool.state.withLock { $0.stage = .running }
            for index in 0..<2 {
                python.pool.slotDidFail(index, failures: WorkerPool.State.failuresOfRefusal, problem: "no thread")
                python.pool.slotDidEnd(index)
            }
            let error = await #expect(throws: WorkerFailure.self) {
                try await python.pool.awaitFirstStarts(isRequired: false)
            }
            #expect(error == .unavailable("no thread"))
        }
        try await python.run { pool in
            #expect(await failure(of: WorkerJob(method: "echo"), in: pool) == nil)
        }
    }

    @Test func `the error of a missing executable names its path`() async throws {
        let pool = WorkerPool(executable: "/none/worker", count: 2, logger: LogLines().logger())
        let error = await #expect(throws: WorkerFailure.self) { try await pool.start() }
        #expect(error == .unavailable("/none/worker: No such file or directory"))
    }

    @Test func `two hundred jobs with files and crashes leak no descriptor`() async throws {
        let folder = TemporaryFolder()
        let path = folder.write("file", "content")
        let python = PythonPool(count: 2)
        try await python.run { pool in
            let before = openDescriptors(below: folder)
            for round in 0..<200 {
                let file = open(path, O_RDONLY | O_CLOEXEC)
                // A worker runs more jobs between two crashes than it may have open descriptors.
                if round % 100 == 50 {
                    _ = await failure(of: WorkerJob(method: "crash", params: ["signal": "SIGSEGV"]), in: pool)
                } else {
                    let result = try await pool.run(WorkerJob(method: "read", files: [file]))
                    #expect(result.attachments.map(\.count) == [7])
                }
                close(file)
            }
            #expect(openDescriptors(below: folder) == before)
        }
    }

    // Counts descriptors of this test's file only, because other tests open files at the same time.
    private func openDescriptors(below folder: TemporaryFolder) -> Int {
        (0..<1024).count { number in
            var target = [CChar](repeating: 0, count: 256)
            let count = readlink("/proc/self/fd/\(number)", &target, 255)
            guard count > 0 else { return false }
            return String(decoding: target[..<count].map(UInt8.init(bitPattern:)), as: UTF8.self).hasPrefix(folder.path)
        }
    }
}

/// Waits until the pool's metrics are as expected, at most until the suite's time limit.
func waitUntil(_ pool: WorkerPool, _ condition: (JSONObject) -> Bool) async throws {
    while !condition(pool.metrics()) { try await Task.sleep(for: .milliseconds(5)) }
}
