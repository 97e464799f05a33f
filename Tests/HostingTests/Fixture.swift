import CProcess
import Glibc
import Logging
import Synchronization

@testable import Hosting

/// A temporary folder of a test, removed at its end.
final class TemporaryFolder: Sendable {
    let path: String

    init() {
        var template = Array("/tmp/safelight-hosting-XXXXXX".utf8CString)
        let isCreated = mkdtemp(&template) != nil
        precondition(isCreated, "no temporary folder")
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    }

    deinit {
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                if name != ".", name != ".." { _ = remove("\(path)/\(name)") }
            }
            closedir(folder)
        }
        rmdir(path)
    }

    @discardableResult
    func write(_ name: String, _ text: String) -> String {
        let file = open("\(path)/\(name)", O_WRONLY | O_CREAT | O_TRUNC, 0o644)
        let bytes = Array(text.utf8)
        _ = Glibc.write(file, bytes, bytes.count)
        close(file)
        return "\(path)/\(name)"
    }
}

/// Runs blocking work on a separate thread, because two blocked tests could occupy all threads of Swift concurrency.
func onOwnThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in
        let box = Unmanaged.passRetained(ThreadBody { continuation.resume(returning: body()) })
        let result = safelight_thread(
            "test",
            { context in
                guard let context else { return }
                Unmanaged<ThreadBody>.fromOpaque(context).takeRetainedValue().body()
            },
            box.toOpaque()
        )
        precondition(result == 0, "no thread")
    }
}

private final class ThreadBody: Sendable {
    let body: @Sendable () -> Void
    init(_ body: @escaping @Sendable () -> Void) { self.body = body }
}

/// Records the lines of a log.
final class LogLines: Sendable {
    private let lines = Mutex<[String]>([])

    var all: [String] { lines.withLock { $0 } }

    func logger(_ level: Logger.Level = .trace) -> Logger {
        ServiceLog.logger(label: "test", level: level) { bytes in
            self.lines.withLock { $0.append(String(decoding: bytes, as: UTF8.self)) }
        }
    }
}

/// A worker in Python, which misbehaves if its job says so.
let pythonWorker = """
    import array, json, os, resource, signal, socket, struct, sys, time
    s = socket.socket(fileno=0)
    def receive(n, files=None):
        data = b''
        while len(data) < n:
            if files is not None and not data:
                part, ancillary, _, _ = s.recvmsg(n, socket.CMSG_SPACE(16 * 4))
                for level, kind, content in ancillary:
                    files.frombytes(content[:len(content) - len(content) % 4])
            else:
                part = s.recv(n - len(data))
            if not part: sys.exit(0)
            data += part
        return data
    def send(header, attachments=()):
        header['attachments'] = [len(a) for a in attachments]
        text = json.dumps(header).encode()
        s.sendall(struct.pack('>I', len(text)) + text + b''.join(attachments))
    if 'die-at-start' in sys.argv: sys.exit(3)
    send({'worker': 1})
    if 'die-idle' in sys.argv: sys.exit(4)
    jobs = 0
    while True:
        files = array.array('i')
        job = json.loads(receive(struct.unpack('>I', receive(4, files))[0]))
        parts = [receive(n) for n in job['attachments']]
        method, params = job['method'], job['params']
        jobs += 1
        for phase in params.get('phases', ['reading']): send({'phase': phase})
        if method == 'echo': send({'result': params}, parts)
        elif method == 'read': send({'result': {'files': len(files)}}, [os.pread(f, 1 << 20, 0) for f in files])
        elif method == 'refuse': send({'error': {
            'name': params.get('name', 'unsupported_format'), 'message': 'not an image'}})
        elif method == 'crash': os.kill(os.getpid(), getattr(signal, params['signal']))
        elif method == 'die':
            first = not os.path.exists(params['path'])
            if first: os.close(os.open(params['path'], os.O_WRONLY | os.O_CREAT))
            os.kill(os.getpid(), signal.SIGKILL if first else signal.SIGSEGV)
        elif method == 'exit': os._exit(5)
        elif method == 'sleep':
            # A job that names a file waits only the first time: until its worker is killed.
            first = 'started' not in params or not os.path.exists(params['started'])
            if 'started' in params:
                # A link, because a worker may not write bytes into files.
                if first: os.symlink(str(os.getpid()), params['started'] + '.pid')
                open(params['started'], 'w').close()
            if first: time.sleep(params['seconds'])
            send({'result': {}})
        elif method == 'chatter':
            # Sends phases faster than they can be read.
            phase = b'{"phase":"working"}'
            while True: s.sendall((struct.pack('>I', len(phase)) + phase) * 1000)
        elif method == 'smuggle':
            phase = b'{"phase":"working"}'
            passed = array.array('i', [os.open(params['path'], os.O_RDONLY)])
            s.sendmsg([struct.pack('>I', len(phase)) + phase], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, passed)])
            os._exit(5)
        elif method == 'video':
            # The first time it is killed in the middle of a record, and then it writes all of it.
            first = not os.path.exists(params['started'])
            if first: open(params['started'], 'w').close()
            os.write(files[-1], struct.pack('=qq', 0, 8) + (b'half' if first else b'complete'))
            if first: os.kill(os.getpid(), signal.SIGKILL)
            if 'keeps' in params: os.dup(files[-1])
            send({'result': {'size': 8}})
        elif method == 'spin':
            while True: pass
        elif method == 'allocate':
            try: bytearray(params['bytes']); send({'result': {}})
            except MemoryError: send({'error': {'name': 'memory_exhausted', 'message': 'too much'}})
        elif method == 'write':
            try: os.write(os.open(params['path'], os.O_WRONLY | os.O_CREAT), b'x' * 100); send({'result': {}})
            except OSError as e: send({'error': {'name': 'io_error', 'message': str(e)}})
        elif method == 'close': s.close(); time.sleep(60)
        elif method == 'garbage': s.sendall(b'\\x00\\x00\\x00\\x08garbage!')
        elif method == 'huge': s.sendall(struct.pack('>I', 32) + b'{"result":{},"attachments":[9e9]}'.ljust(32))
        elif method == 'lots': send({'result': {}}, [b'x' * params['bytes']])
        elif method == 'babble': print('secret \\x1b[31m' * 5000, file=sys.stderr, flush=True); send({'result': {}})
        elif method == 'fork':
            child = os.fork()
            if child == 0: time.sleep(60); os._exit(0)
            send({'result': {'child': child}})
        elif method == 'about': send({'result': {
            'pid': os.getpid(), 'jobs': jobs, 'descriptors': sorted(map(int, os.listdir('/proc/self/fd'))),
            'noNewPrivileges': 'NoNewPrivs:\\t1' in open('/proc/self/status').read(),
            'memory': resource.getrlimit(resource.RLIMIT_AS)[0], 'files': resource.getrlimit(resource.RLIMIT_NOFILE)[0],
            'fileSize': resource.getrlimit(resource.RLIMIT_FSIZE)[0], 'core': resource.getrlimit(resource.RLIMIT_CORE)[0],
            'cpu': resource.getrlimit(resource.RLIMIT_CPU)[0], 'environment': sorted(os.environ)}})
        for file in files: os.close(file)
    """

/// A pool of Python workers.
struct PythonPool {
    let folder = TemporaryFolder()
    let lines = LogLines()
    let pool: WorkerPool

    init(
        count: Int = 1,
        limits: WorkerLimits = WorkerLimits(),
        queueLimit: Int = 100,
        keptWorkers: Int = 1,
        idleTime: Duration = .seconds(15),
        arguments: [String] = []
    ) {
        let script = folder.write("worker.py", pythonWorker)
        pool = WorkerPool(
            executable: "/usr/bin/python3",
            arguments: [script] + arguments,
            count: count,
            limits: limits,
            queueLimit: queueLimit,
            keptWorkers: keptWorkers,
            idleTime: idleTime,
            logger: lines.logger()
        )
    }

    /// Starts the pool, and stops it even if the test throws.
    func run<Value>(_ body: (WorkerPool) async throws -> Value) async throws -> Value {
        try await pool.start()
        do {
            let value = try await body(pool)
            await pool.stop(graceSeconds: 0)
            return value
        } catch {
            await pool.stop(graceSeconds: 0)
            throw error
        }
    }
}

/// Returns the failure of a job; nil if it succeeded.
func failure(of job: WorkerJob, in pool: WorkerPool, wallSeconds: Int? = nil) async -> WorkerFailure? {
    do throws(WorkerFailure) {
        _ = try await pool.run(job, wallSeconds: wallSeconds)
        return nil
    } catch {
        return error
    }
}

/// Returns true if a process runs; false for a zombie, which has ended.
func isAlive(_ pid: Int64) -> Bool {
    let file = open("/proc/\(pid)/stat", O_RDONLY)
    guard file >= 0 else { return false }
    defer { close(file) }
    var buffer = [UInt8](repeating: 0, count: 512)
    let text = String(decoding: buffer[..<max(0, read(file, &buffer, 512))], as: UTF8.self)
    return !text.contains(") Z ")
}
