import ArgumentParser
import Glibc
import Subprocess
import Synchronization
import SystemPackage

/// A command of a service's program that a command of this program carries out, with the same output.
enum ServiceCommand {
    /// Runs it until it ends. Signals that would end this command end it instead.
    ///
    /// - Throws: an exit with the status of a refusal if it does not succeed, or with 128 and the number of the signal that
    ///   ended it
    static func run(_ program: String, _ arguments: [String]) async throws {
        let child = Child()
        let signals = StopSignals { child.end(by: $0) }
        defer { withExtendedLifetime(signals) {} }
        var options = PlatformOptions()
        // The child would not ignore a SIGHUP to the process group of this command.
        if StopSignals.ignoresHangup { options.processGroupID = 0 }
        let result = try await Subprocess.run(
            .path(try ServicePaths.programFolder().appending(program)),
            arguments: Arguments(arguments),
            platformOptions: options,
            input: .none,
            output: .currentStandardOutput,
            error: .currentStandardError
        ) { execution in
            child.begin(execution.processIdentifier.value)
        }
        switch result.terminationStatus {
        case .exited(0): return
        case .exited: throw ExitCode(CommandFailure.Status.refused.rawValue)
        case .signaled(let number): throw ExitCode(128 + Int32(number))
        }
    }

    /// The process, to which signals are passed on, also those that arrived before it began.
    private final class Child: Sendable {
        private let state = Mutex<(process: pid_t?, pending: Int32?)>((nil, nil))

        func begin(_ process: pid_t) {
            state.withLock { state in
                state.process = process
                if let pending = state.pending { kill(process, pending) }
            }
        }

        func end(by signal: Int32) {
            state.withLock { state in
                if let process = state.process { kill(process, signal) } else { state.pending = signal }
            }
        }
    }
}
