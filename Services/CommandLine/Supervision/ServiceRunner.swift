import Basics
import Glibc
import Hosting
import Subprocess
import Synchronization
import SystemPackage

/// Runs one service as a child process: starts it, restarts it when it ends unexpectedly, stops it on request.
final class ServiceRunner: Sendable {
    /// An event in the life of the service, for the output.
    enum Event: Sendable {
        case ready(pid: Int32)
        case exited(String, startingAgainIn: Duration)
        /// The service never became ready.
        case abandoned(String)
        case log(String)
    }

    let name: ServiceName
    /// Requests that the service stops; ``run()`` then returns.
    let stop = StopRequest()
    private let executable: FilePath
    private let variables: [String: String]
    private let onEvent: @Sendable (ServiceRunner, Event) -> Void
    private let wasReady = Mutex(false)
    /// True if the last run ended because another process serves at the address.
    private let isBlocked = Mutex(false)

    /// The time to stop before the service is killed; longer than the services' own limit.
    static let stopTime = Duration.seconds(15)
    /// The number of starts in a row that may fail before the service was ready for the first time.
    static let firstAttempts = 5
    /// The time in which a service of an earlier `safelight up`, which was killed, ends by itself.
    static let orphanTime = Duration.seconds(15)

    init(
        _ name: ServiceName,
        executable: FilePath,
        variables: [String: String],
        onEvent: @escaping @Sendable (ServiceRunner, Event) -> Void
    ) {
        self.name = name
        self.executable = executable
        self.variables = variables
        self.onEvent = onEvent
    }

    /// Keeps the service running until a stop is requested, or until it fails to start ``firstAttempts`` times.
    func run() async {
        var policy = RestartPolicy()
        let clock = ContinuousClock()
        let firstStart = clock.now
        while !stop.isRequested {
            let start = clock.now
            isBlocked.withLock { $0 = false }
            let end = await runOnce()
            if stop.isRequested { return }
            let delay = policy.recordEnd(after: clock.now - start)
            let isWaiting = isBlocked.withLock { $0 } && clock.now - firstStart < Self.orphanTime
            guard isWaiting || wasReady.withLock({ $0 }) || policy.consecutiveFailures < Self.firstAttempts else {
                onEvent(self, .abandoned(end))
                return
            }
            onEvent(self, .exited(end, startingAgainIn: delay))
            if delay > .zero, await stop.wait(withTimeout: delay) { return }
        }
    }

    /// Runs the process once. Returns a description of how it ended.
    private func runOnce() async -> String {
        var options = PlatformOptions()
        // A separate process group: Ctrl-C in a terminal reaches only this program, which stops the services in order.
        options.processGroupID = 0
        let overrides = variables.map { (Subprocess::Environment.Key(stringLiteral: $0.key), Optional($0.value)) }
        do {
            let result = try await Subprocess.run(
                .path(executable),
                arguments: ["--ready-fd", "1"],
                environment: .inherit.updating(Dictionary(overrides) { $1 }),
                platformOptions: options,
                // The pipe stays open while this program runs; the service stops when it reads its end.
                input: .inputWriter,
                output: .sequence,
                error: .sequence
            ) { execution in
                await self.monitor(execution)
            }
            return Self.describe(result.terminationStatus)
        } catch {
            return "cannot be started: \(error)"
        }
    }

    /// The texts in the log of a service whose address or library another process has locked.
    private static let blockedTexts = ["is serving at", "in_use"]

    private func monitor(_ execution: Execution<CustomWriteInput, SequenceOutput, SequenceOutput>) async {
        let pid = execution.processIdentifier.value
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await self.forward(execution.standardOutput) { line in
                    guard line == "ready" else { return false }
                    self.wasReady.withLock { $0 = true }
                    self.onEvent(self, .ready(pid: pid))
                    return true
                }
            }
            group.addTask {
                await self.forward(execution.standardError) { line in
                    if Self.blockedTexts.contains(where: { line.contains($0) }) {
                        self.isBlocked.withLock { $0 = true }
                    }
                    return false
                }
            }
            group.addTask {
                await self.stop.wait()
                guard self.stop.isRequested else { return }
                try? execution.send(signal: .terminate)
                guard await TaskDelay.timeout(Self.stopTime) else { return }
                try? execution.send(signal: .kill, toProcessGroup: true)
            }
            // Both streams end with the process; the third task then has nothing left to stop.
            await group.next()
            await group.next()
            group.cancelAll()
        }
    }

    /// Reports each line as a log line, except those for which `isHandled` returns true, until the stream ends.
    private func forward(
        _ stream: SubprocessOutputSequence,
        except isHandled: @Sendable (String) -> Bool
    ) async {
        do {
            for try await line in stream.strings() {
                let text = line.last?.isNewline == true ? String(line.dropLast()) : line
                if !isHandled(text) { onEvent(self, .log(text)) }
            }
        } catch {
            onEvent(self, .log("its output cannot be read: \(error)"))
        }
    }

    private static func describe(_ status: TerminationStatus) -> String {
        switch status {
        case .exited(let code): "ended with status \(code)"
        case .signaled(let number): "was ended by signal \(number)"
        }
    }
}
