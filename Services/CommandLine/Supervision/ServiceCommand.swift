import ArgumentParser
import Glibc
import Subprocess
import Synchronization
import SystemPackage

/// Runs a command of a service's program as a child process. Its results are printed as those of this program, and its
/// errors are reported in the format of this program.
enum ServiceCommand {
    /// Runs the command until it ends. Signals that would end this program are sent to the command instead.
    ///
    /// - Throws: ``ExitCode`` if the command does not succeed: the status of a partial success, 128 plus the number of
    ///   the signal that ended it, or the status of a refusal
    static func run(_ program: String, _ arguments: [String], _ output: Output) async throws {
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
            error: .sequence
        ) { execution in
            child.begin(execution.processIdentifier.value)
            await forward(execution.standardError, output)
        }
        switch result.terminationStatus {
        case .exited(0): return
        case .exited(CommandFailure.Status.partly.rawValue):
            throw ExitCode(CommandFailure.Status.partly.rawValue)
        case .exited: throw ExitCode(CommandFailure.Status.refused.rawValue)
        case .signaled(let number): throw ExitCode(128 + Int32(number))
        }
    }

    private static func forward(_ stream: SubprocessOutputSequence, _ output: Output) async {
        do {
            for try await line in stream.strings() {
                let text = line.last?.isNewline == true ? String(line.dropLast()) : line
                if let failure = failure(text) { output.report(failure) } else { output.note(text.printable) }
            }
        } catch {
            output.note("its messages cannot be read: \(error)")
        }
    }

    /// Returns the error in a line of a service's program, as "Error: not_found: there is no backup"; nil for others.
    static func failure(_ line: String) -> CommandFailure? {
        guard line.hasPrefix("Error: ") else { return nil }
        let parts = line.dropFirst(7).split(separator: ": ", maxSplits: 1).map(String.init)
        guard parts.count == 2, parts[0].allSatisfy({ $0.isLowercase || $0 == "_" }) else {
            return CommandFailure(message: String(line.dropFirst(7)), name: "error")
        }
        return CommandFailure(message: parts[1], name: parts[0])
    }

    /// The child process. Signals are passed on to it, also those that arrived before it started.
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
