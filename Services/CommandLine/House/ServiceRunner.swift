import Glibc
import Hosting
import Messaging
import Subprocess
import Synchronization
import SystemPackage

/// One service as a child process: started, watched, started again when it dies, stopped when asked.
final class ServiceRunner: Sendable {
    /// What happens to the service, for whoever wants to tell people.
    enum Event: Sendable {
        case ready(pid: Int32)
        case died(String, startingAgainIn: Duration)
        /// It never came up.
        case gaveUp(String)
        case log(String)
    }

    let name: ServiceName
    /// Asks it to stop; ``run()`` then returns.
    let stop = StopRequest()
    private let executable: FilePath
    private let variables: [String: String]
    private let tell: @Sendable (ServiceRunner, Event) -> Void
    private let wasReady = Mutex(false)

    /// How long it may take to stop before it is killed. Longer than a service gives itself.
    static let stopTime = Duration.seconds(15)
    /// Starts that may fail in a row before it was ready for the first time.
    static let firstAttempts = 5

    init(
        _ name: ServiceName,
        executable: FilePath,
        variables: [String: String],
        tell: @escaping @Sendable (ServiceRunner, Event) -> Void
    ) {
        self.name = name
        self.executable = executable
        self.variables = variables
        self.tell = tell
    }

    /// Keeps the service running until it is asked to stop, or until it cannot be brought up at all.
    func run() async {
        var policy = RestartPolicy()
        let clock = ContinuousClock()
        while !stop.isRequested {
            let start = clock.now
            let end = await runOnce()
            if stop.isRequested { return }
            let pause = policy.pause(after: clock.now - start)
            guard wasReady.withLock({ $0 }) || policy.deathsInARow < Self.firstAttempts else {
                tell(self, .gaveUp(end))
                return
            }
            tell(self, .died(end, startingAgainIn: pause))
            if pause > .zero, await stop.wait(atMost: pause) { return }
        }
    }

    /// From start to end, whatever the reason; how it ended in words.
    private func runOnce() async -> String {
        var options = PlatformOptions()
        // A group of its own: Ctrl-C in a terminal reaches this program alone, which stops the services in their order.
        options.processGroupID = 0
        let overrides = variables.map { (Subprocess::Environment.Key(stringLiteral: $0.key), Optional($0.value)) }
        do {
            let result = try await Subprocess.run(
                .path(executable),
                arguments: ["--ready-fd", "1"],
                environment: .inherit.updating(Dictionary(overrides) { $1 }),
                platformOptions: options,
                // Held open for the life of this program: its end tells the service that nobody watches it any more.
                input: .inputWriter,
                output: .sequence,
                error: .sequence
            ) { execution in
                await self.attend(execution)
            }
            return Self.words(result.terminationStatus)
        } catch {
            return "cannot be started: \(error)"
        }
    }

    private func attend(_ execution: Execution<CustomWriteInput, SequenceOutput, SequenceOutput>) async {
        let pid = execution.processIdentifier.value
        await withTaskGroup(of: Void.self) { group in
            group.addTask {
                await self.forward(execution.standardOutput) { line in
                    guard line == "ready" else { return false }
                    self.wasReady.withLock { $0 = true }
                    self.tell(self, .ready(pid: pid))
                    return true
                }
            }
            group.addTask { await self.forward(execution.standardError) { _ in false } }
            group.addTask {
                await self.stop.wait()
                guard self.stop.isRequested else { return }
                try? execution.send(signal: .terminate)
                guard await Waiting.patiently(Self.stopTime) else { return }
                try? execution.send(signal: .kill, toProcessGroup: true)
            }
            // Both streams end with the process, and then there is nothing left to stop.
            await group.next()
            await group.next()
            group.cancelAll()
        }
    }

    /// Passes lines on until the stream ends.
    private func forward(_ stream: SubprocessOutputSequence, except isTaken: @Sendable (String) -> Bool) async {
        do {
            for try await line in stream.strings() {
                let text = line.last?.isNewline == true ? String(line.dropLast()) : line
                if !isTaken(text) { tell(self, .log(text)) }
            }
        } catch {
            tell(self, .log("its output cannot be read: \(error)"))
        }
    }

    private static func words(_ status: TerminationStatus) -> String {
        switch status {
        case .exited(let code): "ended with status \(code)"
        case .signaled(let number): "was ended by signal \(number)"
        }
    }
}
