public import Foundation
import Synchronization

/// A real executable started by a test.
///
/// Started with `posix_spawn(3)`, because Foundation's `Process` has crashed in `run` when many tests started programs.
public final class RunningProgram: Sendable {
    /// The name or path by which it was started.
    public let name: String
    /// The process id.
    public let processIdentifier: Int32
    private let exitStatus = Mutex<Int32?>(nil)
    private let exited = DispatchSemaphore(value: 0)
    private let output = Mutex(Data())
    private let errors = Mutex(Data())
    private let drains = DispatchGroup()
    private let arrived = DispatchSemaphore(value: 0)
    private static let starting = Mutex(())

    /// Starts a program. `arguments` and `environment` are added to the test's own environment.
    public init(_ name: String, _ arguments: [String] = [], environment: [String: String] = [:], input: Data? = nil)
        throws
    {
        self.name = name
        let path = name.contains("/") ? name : TestPaths.executables + "/" + name
        // Tests would fill the user's own state folder with their folders.
        let state = ["SAFELIGHT_STATE": FileManager.default.temporaryDirectory.path + "/safelight-tests-state"]
        // SAFELIGHT_STORE selects the database of the tests; programs get its address.
        let inherited = ProcessInfo.processInfo.environment.filter { $0.key != "SAFELIGHT_STORE" }
        let variables = state.merging(inherited) { $1 }.merging(environment) { $1 }
        // One at a time, so that no program inherits the pipes of another.
        let (output, errors, inputPipe, number) = try Self.starting.withLock { _ in
            let (output, errors, inputPipe) = (try Self.pipe(), try Self.pipe(), try input.map { _ in try Self.pipe() })
            let number = try Self.spawn(
                [path] + arguments,
                variables.map { "\($0)=\($1)" },
                input: inputPipe?.reading,
                output: output.writing,
                errors: errors.writing
            )
            return (output, errors, inputPipe, number)
        }
        processIdentifier = number
        for descriptor in [output.writing, errors.writing, inputPipe?.reading].compactMap(\.self) { close(descriptor) }
        if let inputPipe, let input {
            try FileHandle(fileDescriptor: inputPipe.writing, closeOnDealloc: true).write(contentsOf: input)
        }
        drain(output.reading) { program, data in program.output.withLock { $0.append(data) } }
        drain(errors.reading) { program, data in
            program.errors.withLock { log in
                log.append(data)
                if log.count > 4 << 20 { log = Data(log.suffix(2 << 20)) }
            }
        }
        reap()
    }

    private static func pipe() throws -> (reading: Int32, writing: Int32) {
        var ends: [Int32] = [0, 0]
        guard Foundation.pipe(&ends) == 0 else { throw POSIXError(POSIXErrorCode(rawValue: errno) ?? .EMFILE) }
        for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        return (ends[0], ends[1])
    }

    private static func spawn(
        _ arguments: [String],
        _ environment: [String],
        input: Int32?,
        output: Int32,
        errors: Int32
    ) throws -> Int32 {
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        if let input {
            posix_spawn_file_actions_adddup2(&actions, input, 0)
        } else {
            posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        }
        posix_spawn_file_actions_adddup2(&actions, output, 1)
        posix_spawn_file_actions_adddup2(&actions, errors, 2)
        // The tests' own descriptors are not inherited. Closing one that is closed already does no harm.
        for entry in try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd") {
            if let descriptor = Int32(entry), descriptor > 2 { posix_spawn_file_actions_addclose(&actions, descriptor) }
        }
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        for signal in [SIGPIPE, SIGINT, SIGTERM, SIGHUP, SIGCHLD] { sigaddset(&signals, signal) }
        posix_spawnattr_setsigdefault(&attributes, &signals)
        // A process group of its own, so that Ctrl-C in the terminal does not reach it.
        posix_spawnattr_setpgroup(&attributes, 0)
        posix_spawnattr_setflags(
            &attributes,
            Int16(POSIX_SPAWN_SETSIGMASK) | Int16(POSIX_SPAWN_SETSIGDEF) | Int16(POSIX_SPAWN_SETPGROUP)
        )
        let (words, variables) = (arguments.map { strdup($0) } + [nil], environment.map { strdup($0) } + [nil])
        defer { for text in words + variables { free(text) } }
        var number: Int32 = 0
        let problem = posix_spawn(&number, arguments[0], &actions, &attributes, words, variables)
        guard problem == 0 else { throw POSIXError(POSIXErrorCode(rawValue: problem) ?? .ENOENT) }
        return number
    }

    private func reap() {
        let (number, exited, arrived) = (processIdentifier, exited, arrived)
        Thread.detachNewThread { [weak self] in
            var status: Int32 = 0
            while waitpid(number, &status, 0) < 0, errno == EINTR {}
            // The exit status, or the number of the signal.
            let exitStatus = status & 0x7F == 0 ? status >> 8 & 0xFF : status & 0x7F
            self?.exitStatus.withLock { $0 = exitStatus }
            exited.signal()
            arrived.signal()
        }
    }

    private func drain(_ descriptor: Int32, _ append: @escaping @Sendable (RunningProgram, Data) -> Void) {
        let drains = self.drains
        drains.enter()
        Thread.detachNewThread { [weak self] in
            var bytes = [UInt8](repeating: 0, count: 64 << 10)
            while true {
                let count = read(descriptor, &bytes, bytes.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { break }
                guard let self else { continue }
                append(self, Data(bytes[..<count]))
                self.arrived.signal()
            }
            close(descriptor)
            self?.arrived.signal()
            drains.leave()
        }
    }

    /// Waits until the standard output contains a text. Returns false if the program exits or the time expires before.
    public func waitForOutput(_ text: String, seconds: Double = 30) -> Bool {
        wait(seconds: seconds) { $0.outputText.contains(text) }
    }

    /// Waits until the program meets a condition. Returns false if it exits or the time expires before.
    public func wait(seconds: Double = 30, until condition: (RunningProgram) -> Bool) -> Bool {
        let end = DispatchTime.now() + seconds
        while !condition(self) {
            if arrived.wait(timeout: end) == .timedOut { return false }
            if !isRunning, drains.wait(timeout: end) == .success { return condition(self) }
        }
        return true
    }

    /// True until the program has exited.
    public var isRunning: Bool { exitStatus.withLock { $0 == nil } }
    /// The standard output so far.
    public var outputText: String { output.withLock { String(decoding: $0, as: UTF8.self) } }
    /// The standard error so far.
    public var errorText: String { errors.withLock { String(decoding: $0, as: UTF8.self) } }

    /// Sends a signal.
    public func signal(_ number: Int32) { kill(processIdentifier, number) }

    /// Waits for the exit and the last output, and returns the status. If the time expires, kills the program and
    /// returns nil.
    @discardableResult
    public func wait(seconds: Double = 60) -> Int32? {
        let status = waitForExit(seconds: seconds)
        // Another process that has inherited the pipes may keep them open.
        _ = drains.wait(timeout: .now() + 2)
        return status
    }

    private func waitForExit(seconds: Double) -> Int32? {
        if exited.wait(timeout: .now() + seconds) == .timedOut {
            signal(SIGKILL)
            exited.wait()
            exited.signal()
            return nil
        }
        exited.signal()
        return exitStatus.withLock { $0 }
    }

    /// Kills the program with SIGKILL and waits until it has exited.
    public func killHard() {
        signal(SIGKILL)
        _ = waitForExit(seconds: 60)
    }

    deinit {
        if isRunning { kill(processIdentifier, SIGKILL) }
    }

    /// Runs a program until it exits and returns its status and output.
    public static func run(
        _ name: String,
        _ arguments: [String] = [],
        environment: [String: String] = [:],
        input: Data? = nil,
        seconds: Double = 120
    ) throws -> (status: Int32?, output: String, errors: String) {
        let program = try RunningProgram(name, arguments, environment: environment, input: input)
        let status = program.wait(seconds: seconds)
        program.drains.wait()
        return (status, program.outputText, program.errorText)
    }
}
