import Basics
import CProcess
import Glibc
import JSONValue
import Logging

/// A worker process, from its start to its end. It is confined to the thread of its slot.
///
/// It is started with a small C function instead of swift-subprocess, because limits, no_new_privs and the parent death
/// signal must be set before the program's first instruction, and the death signal depends on the *thread* that started
/// the process.
final class RunningWorker {
    /// The outcome of a job.
    enum Outcome {
        case answered(Result<WorkerResult, WorkerFailure>)
        /// The worker had ended before any of the job was sent.
        case notBegun
        case cancelled
        case outOfTime
        case broken(WorkerChannelError)
    }

    enum Status: Equatable {
        case code(Int32)
        case signal(Int32)
    }

    let pid: Int32
    /// The exit status; nil while it runs.
    private(set) var status: Status?
    /// True if this process killed it.
    private(set) var wasKilled = false
    /// The confinement that the worker reported; nil if it reported none.
    private(set) var confinement: Confinement?

    /// The phase of the current job.
    private var phase = WorkerPhase.received
    /// True if the current job has reached ``WorkerPhase/working``; after that, reading does not explain its duration.
    private var hasWorked = false
    /// CPU time used before the current job, in nanoseconds.
    private var usedBefore: Int64 = 0

    private let limits: WorkerLimits
    private let logger: Logger
    private var socket: Int32
    private var logPipe: WorkerLogPipe
    private var reader: WorkerFrame.Reader

    init(_ command: WorkerLaunch, logger: Logger) throws(WorkerStartError) {
        var ends: [Int32] = [-1, -1]
        var pipes: [Int32] = [-1, -1]
        guard safelight_socket_pair(&ends) == 0 else { throw Self.failed("a socket") }
        guard safelight_pipe(&pipes) == 0 else {
            let error = Self.failed("a pipe")
            for end in ends { close(end) }
            throw error
        }
        _ = fcntl(ends[0], F_SETFL, O_NONBLOCK)
        _ = fcntl(pipes[0], F_SETFL, O_NONBLOCK)
        let pid = command.spawn(input: ends[1], output: pipes[1])
        let problem = errno
        close(ends[1])
        close(pipes[1])
        guard pid > 0 else {
            close(ends[0])
            close(pipes[0])
            throw WorkerStartError(reason: "\(command.executable): \(String(cString: strerror(problem)))")
        }
        self.pid = pid
        self.limits = command.limits
        self.logger = logger
        self.socket = ends[0]
        self.logPipe = WorkerLogPipe(pipe: pipes[0])
        self.reader = WorkerFrame.Reader(limit: command.limits.resultBytes)
    }

    private static func failed(_ object: String) -> WorkerStartError {
        WorkerStartError(reason: "\(object) cannot be made: \(String(cString: strerror(errno)))")
    }

    deinit { end() }

    /// The time that a worker that closed its socket may take to exit, in milliseconds; the socket closes shortly
    /// before.
    private static let exitMilliseconds: Int32 = 200

    /// Kills the process and all processes it started, and reads its status. It may be called repeatedly.
    ///
    /// A worker has no state, so it is killed without notice.
    ///
    /// - Parameter isExiting: true for a worker that closed its socket: its exit status determines the job's error
    func end(isExiting: Bool = false) {
        guard socket >= 0 else { return }
        wasKilled = !isExiting || safelight_await_end(pid, Self.exitMilliseconds) == 0
        kill(-pid, SIGKILL)
        kill(pid, SIGKILL)
        var code: Int32 = 0
        var signal: Int32 = 0
        if safelight_wait(pid, &code, &signal) == 0 {
            status = signal != 0 ? .signal(signal) : .code(code)
        }
        logPipe.finish(logger, pid: pid)
        for file in reader.removeFiles() { close(file) }
        close(socket)
        socket = -1
    }

    /// Ends the process if necessary and returns a description of its exit status.
    func describeEnd() -> String {
        end(isExiting: true)
        return switch status {
        case .code(let code)?: "exited with code \(code)"
        case .signal(let number)?: "ended by signal \(number)"
        case nil: "ended"
        }
    }

    // MARK: Waiting

    private struct Events {
        var hasInput = false, canSend = false, wasSignaled = false
    }

    private func wait(_ wakeup: EventDescriptor, until: MonotonicInstant?, sending: Bool = false) -> Events {
        var polled = [
            pollfd(fd: socket, events: Int16(POLLIN) | (sending ? Int16(POLLOUT) : 0), revents: 0),
            pollfd(fd: wakeup.descriptor, events: Int16(POLLIN), revents: 0),
            // poll ignores negative descriptors.
            pollfd(fd: logPipe.isOpen ? logPipe.pipe : -1, events: Int16(POLLIN), revents: 0),
        ]
        guard poll(&polled, nfds_t(polled.count), until?.pollTimeout ?? -1) > 0 else { return Events() }
        if polled[2].revents != 0 { logPipe.drain(logger, pid: pid) }
        if polled[1].revents != 0 { wakeup.clear() }
        let ended = Int16(POLLHUP) | Int16(POLLERR)
        return Events(
            hasInput: polled[0].revents & (Int16(POLLIN) | ended) != 0,
            canSend: polled[0].revents & (Int16(POLLOUT) | ended) != 0,
            wasSignaled: polled[1].revents != 0
        )
    }

    /// Waits for the worker's first frame.
    func awaitReady(until deadline: MonotonicInstant, wakeup: EventDescriptor, isStopping: () -> Bool)
        throws(WorkerStartError)
    {
        while true {
            if isStopping() { throw WorkerStartError(reason: "the service is stopping") }
            guard MonotonicInstant.now() < deadline else {
                throw WorkerStartError(reason: "it did not report that it is ready")
            }
            guard wait(wakeup, until: deadline).hasInput else { continue }
            let progress: WorkerFrame.Reader.Progress
            do throws(WorkerChannelError) {
                progress = try reader.receive(from: socket)
            } catch {
                throw WorkerStartError(reason: error == .closed ? describeEnd() : "\(error)")
            }
            guard case .frame(let frame) = progress else { continue }
            guard frame.header["worker"]?.intValue == 1 else {
                throw WorkerStartError(reason: "its first frame is not {\"worker\": 1}")
            }
            confinement = Confinement(json: frame.header["confinement"])
            return
        }
    }

    /// The reason why an idle worker stops waiting.
    enum IdleEvent {
        case wakeup
        /// The worker ended, or sent anything without a job.
        case ended
        case outOfTime
    }

    /// Waits for the wakeup.
    func waitForWakeup(_ wakeup: EventDescriptor, until deadline: MonotonicInstant?) -> IdleEvent {
        while true {
            let events = wait(wakeup, until: deadline)
            if events.hasInput { return .ended }
            if events.wasSignaled { return .wakeup }
            if let deadline, MonotonicInstant.now() >= deadline { return .outOfTime }
        }
    }

    // MARK: A job

    /// Sends a job to the worker and waits for its response; `interruption` is called after each wakeup.
    func perform(
        _ job: WorkerJob,
        until wallDeadline: MonotonicInstant,
        wakeup: EventDescriptor,
        interruption: () -> (isCancelled: Bool, deadline: MonotonicInstant)
    ) -> Outcome {
        var deadline = wallDeadline
        allowProcessorTime()
        phase = .received
        hasWorked = false
        logPipe.begin()
        var writer = WorkerFrame.Writer(
            WorkerFrame(
                header: ["method": .string(job.method), "params": job.params, "files": JSON(job.files.count)],
                attachments: job.attachments
            ),
            files: job.files
        )
        do throws(WorkerChannelError) {
            while true {
                let now = MonotonicInstant.now()
                let (isCancelled, stop) = interruption()
                if isCancelled { return .cancelled }
                deadline = min(deadline, stop)
                guard now < deadline else { return .outOfTime }
                if !writer.isDone { try writer.send(to: socket) }
                let events = wait(wakeup, until: deadline, sending: !writer.isDone)
                // One frame at a time: a worker that sends phases without end does not escape the deadline. The reader
                // takes no byte of the next frame, so the socket stays readable.
                guard events.hasInput, case .frame(let frame) = try reader.receive(from: socket) else { continue }
                guard writer.isDone else { throw .malformed("a response before the whole job was sent") }
                guard let phase = frame.header["phase"] else { return try answer(frame) }
                try enter(phase)
            }
        } catch {
            return error == .closed && !writer.hasBegun ? .notBegun : .broken(error)
        }
    }

    private func enter(_ name: JSON) throws(WorkerChannelError) {
        guard let next = name.stringValue.flatMap(WorkerPhase.init(rawValue:)) else {
            throw .malformed("there is no phase \(name.text)")
        }
        phase = next
        if next == .working { hasWorked = true }
    }

    /// The phase to which the end of the worker is attributed.
    var phaseOfEnd: WorkerPhase { phase }

    /// Returns the phase to which a timeout is attributed. It is ``WorkerPhase/reading`` only if reading used at least
    /// half of the time in CPU time; otherwise the worker waited for a CPU or was stopped.
    func phaseOfDelay(seconds: Int) -> WorkerPhase {
        guard !hasWorked else { return .working }
        let used = max(0, safelight_cpu_nanoseconds(pid) - usedBefore)
        return phase == .reading && used >= Int64(seconds) * 500_000_000 ? .reading : .received
    }

    /// The phase to which the end is attributed if the system killed the worker because of its CPU time.
    var phaseOfExhaustion: WorkerPhase { hasWorked ? .working : phase }

    private func answer(_ frame: WorkerFrame) throws(WorkerChannelError) -> Outcome {
        for file in reader.removeFiles() { close(file) }
        if let result = frame.header["result"] {
            return .answered(.success(WorkerResult(result: result, attachments: frame.attachments)))
        }
        guard let error = frame.header["error"], let name = error["name"]?.stringValue,
            let message = error["message"]?.stringValue
        else { throw .malformed("a response has a result or an error") }
        return .answered(
            .failure(.refused(name: String(name.prefix(64)), message: String(message.prefix(1000))))
        )
    }

    // The kernel counts CPU time over the life of the process, so the limit is raised for each job.
    private func allowProcessorTime() {
        usedBefore = max(0, safelight_cpu_nanoseconds(pid))
        let used = usedBefore / 1_000_000_000
        _ = safelight_limit_cpu(pid, UInt64(used) + UInt64(max(1, limits.cpuSeconds)) + 1)
    }
}

/// The reason why a worker process could not be started.
struct WorkerStartError: Error {
    let reason: String
}

// MARK: - Its command line

/// The command line, environment and limits of a worker process.
struct WorkerLaunch: Sendable {
    let executable: String
    let arguments: [String]
    let environment: [String]
    let limits: WorkerLimits

    // A process that decodes hostile bytes inherits only the variables that it needs, and no secrets of the service.
    private static let inherited = ["PATH", "HOME", "TMPDIR", "LANG", "TZ", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"]
    private static let inheritedPrefixes = ["LC_", "MAGICK_", "SWIFT_", "TSAN_", "ASAN_", "LSAN_"]

    init(executable: String, arguments: [String], additions: [String: String], limits: WorkerLimits) {
        self.executable = executable
        self.arguments = [executable] + arguments
        self.limits = limits
        // Crashes are expected here; printing a backtrace would delay the error of the job.
        var variables = ["SWIFT_BACKTRACE": "enable=no"]
        for (name, value) in Environment.current
        where Self.inherited.contains(name) || Self.inheritedPrefixes.contains(where: name.hasPrefix) {
            variables[name] = value
        }
        variables.merge(additions) { $1 }
        variables[WorkerProcess.limitsVariable] = limits.json.text
        environment = variables.map { "\($0.key)=\($0.value)" }.sorted()
    }

    /// Starts the process; returns its id, or -1 with `errno` set.
    ///
    /// The executable is that of the service. With the argument `worker` its `main` calls ``WorkerProcess/serve(_:)``
    /// with the handler of its jobs (``ServiceProgram/run(_:worker:)``).
    func spawn(input: Int32, output: Int32) -> Int32 {
        var system = limits.system
        return withCStrings(arguments) { arguments in
            withCStrings(environment) { environment in
                safelight_spawn(executable, arguments, environment, input, output, &system)
            }
        }
    }

    private func withCStrings<Value>(
        _ strings: [String],
        _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
    ) -> Value {
        let copies = strings.map { strdup($0) } + [nil]
        defer { for copy in copies { free(copy) } }
        return copies.withUnsafeBufferPointer { buffer in
            // Never empty, because of the terminator.
            buffer.baseAddress.map(body) ?? body([nil])
        }
    }
}

// MARK: - Its output

/// The standard output and error of a worker, logged line by line, at most ``bytesPerJob`` per job.
struct WorkerLogPipe {
    static let bytesPerJob = 8 << 10
    private static let maxLineBytes = 1000

    let pipe: Int32
    private(set) var isOpen = true
    private var line: [UInt8] = []
    private var left = bytesPerJob
    private var dropped = 0

    init(pipe: Int32) {
        self.pipe = pipe
    }

    mutating func begin() {
        left = Self.bytesPerJob
    }

    mutating func drain(_ logger: Logger, pid: Int32) {
        var buffer = [UInt8](repeating: 0, count: 4096)
        // Bounded, because a worker that writes without end must not keep its thread from checking the deadline.
        for _ in 0..<16 where isOpen {
            let count = read(pipe, &buffer, buffer.count)
            if count < 0 {
                if errno == EINTR { continue }
                isOpen = errno == EAGAIN
                return
            }
            if count == 0 { isOpen = false }
            for byte in buffer[..<count] { append(byte, logger, pid) }
        }
    }

    private mutating func append(_ byte: UInt8, _ logger: Logger, _ pid: Int32) {
        guard left > 0 else {
            dropped += 1
            return
        }
        left -= 1
        if byte != UInt8(ascii: "\n") { line.append(byte) }
        if byte == UInt8(ascii: "\n") || line.count >= Self.maxLineBytes || left == 0 { log(logger, pid) }
    }

    private mutating func log(_ logger: Logger, _ pid: Int32) {
        guard !line.isEmpty else { return }
        let text = String(decoding: line, as: UTF8.self)
        logger.notice("worker output", metadata: ["worker.pid": "\(pid)", "worker.text": "\(text)"])
        line = []
    }

    mutating func finish(_ logger: Logger, pid: Int32) {
        drain(logger, pid: pid)
        log(logger, pid)
        if dropped > 0 { logger.notice("worker output truncated", metadata: ["worker.dropped": "\(dropped)"]) }
        close(pipe)
        isOpen = false
    }
}
