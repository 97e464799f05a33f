import Basics
import Glibc
import JSONValue
import PhotoModel
import Subprocess
import SystemPackage

/// Runs the user's command for each change, with the record on its standard input and variables in its environment.
struct ChangeHook: Sendable {
    /// The command line for `/bin/sh -c`.
    let command: String
    /// The time limit of one run.
    let timeLimit: Duration

    /// The end of a run.
    enum End: Equatable, Sendable {
        case done
        /// The status as a shell reports it: the command's exit status, or 128 plus the number of the signal.
        case failed(Int32)
        case timedOut

        var status: Int32 {
            switch self {
            case .done: 0
            case .failed(let code): code
            case .timedOut: 124
            }
        }

        var description: String {
            switch self {
            case .done: "done"
            case .failed(let code) where code > 128: "was ended by signal \(code - 128)"
            case .failed(let code): "ended with status \(code)"
            case .timedOut: "exceeded the time limit and was ended"
            }
        }
    }

    /// The time between SIGTERM and SIGKILL.
    private static let stopTimeout = Duration.seconds(5)

    /// Runs the command for a change.
    func run(for record: ChangeRecord) async throws -> End {
        var variables = [
            "SAFELIGHT_SEQUENCE": "\(record.sequence)", "SAFELIGHT_TOKEN": record.token.description,
            "SAFELIGHT_DATE": "\(record.date)", "SAFELIGHT_ORIGIN": record.origin.identity,
        ]
        variables["SAFELIGHT_TOPICS"] = record.topics.joined(separator: " ")
        var json = record.json.objectValue ?? [:]
        json["token"] = .string(record.token.description)
        return try await run(.object(json), variables)
    }

    /// Runs the command once if the history no longer reaches back to the token; the command must fetch again.
    func runExpired(head: ChangeToken, oldest: ChangeToken) async throws -> End {
        try await run(
            ["expired": ["token": .string(head.description), "oldest": .string(oldest.description)]],
            ["SAFELIGHT_TOKEN": head.description, "SAFELIGHT_SEQUENCE": "\(head.sequence)", "SAFELIGHT_EXPIRED": "1"]
        )
    }

    /// Runs the command with one line on its standard input.
    func run(_ json: JSON, _ variables: [String: String]) async throws -> End {
        let line = Array((json.text + "\n").utf8)
        // Cancellation at the time limit ends the command and all its child processes.
        return try await TaskDelay.withTimeout(timeLimit) { try await execute(line, variables) } ?? .timedOut
    }

    private func execute(_ line: [UInt8], _ variables: [String: String]) async throws -> End {
        var options = PlatformOptions()
        // A separate process group: Ctrl-C reaches only the watch, which lets the command finish.
        options.processGroupID = 0
        options.teardownSequence = [
            .gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: Self.stopTimeout)
        ]
        let overrides = variables.map { (Subprocess::Environment.Key(stringLiteral: $0.key), Optional($0.value)) }
        do {
            let result = try await Subprocess.run(
                .path("/bin/sh"),
                arguments: ["-c", command],
                environment: .inherit.updating(Dictionary(overrides) { $1 }),
                platformOptions: options,
                input: .inputWriter,
                output: .currentStandardOutput,
                error: .currentStandardError
            ) { execution in
                // A command need not read its input, so write errors are ignored.
                _ = try? await execution.standardInputWriter.write(line)
                try? await execution.standardInputWriter.finish()
            }
            return switch result.terminationStatus {
            case .exited(0): .done
            case .exited(let code): .failed(Int32(code))
            case .signaled(let number): .failed(128 + Int32(number))
            }
        } catch {
            throw CommandFailure(message: "the command cannot be started: \(error)", name: "not_started")
        }
    }
}
