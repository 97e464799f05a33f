import CProcess
import Glibc
import JSONValue
import Synchronization

/// The worker's side of a ``WorkerPool``: the hidden `worker` subcommand of a service.
///
/// It decodes untrusted bytes, one job at a time, on its only thread, with one end of a socketpair as its standard
/// input. It exits when the socket is closed.
public enum WorkerProcess {
    /// The environment variable that contains the worker's limits as JSON.
    static let limitsVariable = "SAFELIGHT_WORKER_LIMITS"

    /// Handles jobs until the pool closes the socket, then exits with 0.
    ///
    /// The pool has started this process with limits and no_new_privs. Both are set again, and the process is confined,
    /// before the first byte is read. Libraries that open files must have been initialized before, on the only thread.
    /// Descriptors of a job are closed when the handler returns.
    ///
    /// - Parameter handler: blocks while it works; a thrown error is sent as the job's response.
    public static func serve(_ handler: (WorkerJob) throws(WorkerJobError) -> WorkerResult) -> Never {
        var status = stat()
        guard fstat(0, &status) == 0, status.st_mode & S_IFMT == S_IFSOCK else {
            write("this command is started only by the services, with a socket as standard input\n")
            exit(64)
        }
        let limits = Self.limits
        var system = limits.system
        guard safelight_no_new_privileges() == 0, safelight_apply_limits(&system) == 0 else {
            write("the worker's limits cannot be set: \(String(cString: strerror(errno)))\n")
            exit(71)
        }
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
        // Decoders leave parts of a damaged image as they were allocated. Without this setting those would be the
        // pixels of an earlier job.
        safelight_clear_blocks()
        let confinement: Confinement
        do throws(Confinement.SystemError) {
            confinement = try Confinement.apply()
        } catch {
            write("the worker cannot be confined: \(String(cString: strerror(error.number)))\n")
            exit(71)
        }
        do throws(WorkerChannelError) {
            try serve(socket: 0, attachmentLimit: limits.resultBytes, confinement, handler)
        } catch .closed {
            exit(0)
        } catch {
            write("the worker failed: \(error)\n")
            exit(70)
        }
    }

    /// The limits of this worker process.
    public static let limits: WorkerLimits = {
        let text = getenv(limitsVariable).map { String(cString: $0) } ?? "{}"
        return WorkerLimits(json: try? JSON(parsing: text))
    }()

    // MARK: Phases

    private struct Job {
        let socket: Int32
        var phase = WorkerPhase.received
    }

    private static let job = Mutex<Job?>(nil)

    /// Reports the phase of the job that begins now. Does nothing outside of a worker, or if the phase has begun.
    public static func enter(_ phase: WorkerPhase) {
        let socket = job.withLock { job -> Int32? in
            guard let socket = job?.socket, job?.phase != phase else { return nil }
            job?.phase = phase
            return socket
        }
        guard let socket else { return }
        // If this fails, sending the response fails too.
        try? send(WorkerFrame(header: ["phase": .string(phase.rawValue)]), to: socket)
    }

    // MARK: Serving

    /// Runs the loop; throws ``WorkerChannelError/closed`` when the pool closes the socket.
    static func serve(
        socket: Int32,
        attachmentLimit: Int,
        _ confinement: Confinement? = nil,
        _ handler: (WorkerJob) throws(WorkerJobError) -> WorkerResult
    ) throws(WorkerChannelError) -> Never {
        var ready: JSONObject = ["worker": 1]
        ready["confinement"] = confinement?.json
        try send(WorkerFrame(header: .object(ready)), to: socket)
        defer { job.withLock { $0 = nil } }
        var reader = WorkerFrame.Reader(limit: attachmentLimit)
        while true {
            guard case .frame(let frame) = try reader.receive(from: socket) else { continue }
            let files = reader.removeFiles()
            defer { for file in files { close(file) } }
            job.withLock { $0 = Job(socket: socket) }
            try send(answer(to: frame, files: files, handler), to: socket)
        }
    }

    private static func answer(
        to frame: WorkerFrame,
        files: [Int32],
        _ handler: (WorkerJob) throws(WorkerJobError) -> WorkerResult
    ) -> WorkerFrame {
        do throws(WorkerJobError) {
            guard let method = frame.header["method"]?.stringValue, let params = frame.header["params"] else {
                throw WorkerJobError(name: "invalid_request", message: "a job has a method and params")
            }
            guard frame.header["files"]?.intValue ?? 0 == Int64(files.count) else {
                throw WorkerJobError(name: "io_error", message: "not all descriptors arrived; retry")
            }
            let job = WorkerJob(method: method, params: params, attachments: frame.attachments, files: files)
            let isAttempt = method == Confinement.attemptsMethod
            let result = isAttempt ? Confinement.attempt(params) : try handler(job)
            return WorkerFrame(header: ["result": result.result], attachments: result.attachments)
        } catch {
            return WorkerFrame(header: ["error": ["name": .string(error.name), "message": .string(error.message)]])
        }
    }

    private static func send(_ frame: WorkerFrame, to socket: Int32) throws(WorkerChannelError) {
        var writer = WorkerFrame.Writer(frame)
        while !writer.isDone { try writer.send(to: socket) }
    }

    private static func write(_ text: String) {
        let bytes = Array(text.utf8)
        _ = Glibc.write(2, bytes, bytes.count)
    }
}

extension WorkerJob {
    /// Returns all bytes of one of the job's files, or at most the `first` of them, regardless of its file offset. The
    /// phase is then ``WorkerPhase/reading`` until the worker reports another.
    ///
    /// Throws `too_large` above the limit in bytes, `io_error` if the file cannot be read, and `invalid_request` if the
    /// job has no such file.
    public func contents(ofFile index: Int, limit: Int, first: Int = .max) throws(WorkerJobError) -> [UInt8] {
        guard files.indices.contains(index) else {
            throw WorkerJobError(name: "invalid_request", message: "the job has no file \(index)")
        }
        var status = stat()
        guard fstat(files[index], &status) == 0 else { throw .unreadable(errno) }
        guard Int(status.st_size) <= limit else {
            throw WorkerJobError(
                name: "too_large",
                message: "the file has \(status.st_size) bytes, the limit is \(limit)"
            )
        }
        let size = min(Int(status.st_size), max(0, first))
        var problem: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, used in
            while used < size {
                let count = pread(files[index], buffer.baseAddress?.advanced(by: used), size - used, off_t(used))
                if count < 0, errno == EINTR { continue }
                problem = count < 0 ? errno : 0
                if count <= 0 { break }
                used += count
            }
        }
        guard problem == 0 else { throw .unreadable(problem) }
        WorkerProcess.enter(.reading)
        return bytes
    }
}

extension WorkerJobError {
    fileprivate static func unreadable(_ problem: Int32) -> WorkerJobError {
        WorkerJobError(name: "io_error", message: "the file cannot be read: \(String(cString: strerror(problem)))")
    }
}
