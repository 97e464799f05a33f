import Glibc
import JSONValue
import Messaging
import PhotoModel
import Subprocess
import SystemPackage

/// The user's command, run once for each change: the record on its standard input, the rest in its environment.
struct ChangeProgram: Sendable {
    /// For a shell.
    let command: String
    /// How long one run may take.
    let time: Duration

    /// How a run ended.
    enum End: Equatable, Sendable {
        case done
        /// As a shell counts: the command's own status, or 128 and the number of the signal.
        case failed(Int32)
        case outOfTime

        var status: Int32 {
            switch self {
            case .done: 0
            case .failed(let code): code
            case .outOfTime: 124
            }
        }

        var words: String {
            switch self {
            case .done: "done"
            case .failed(let code) where code > 128: "was ended by signal \(code - 128)"
            case .failed(let code): "ended with status \(code)"
            case .outOfTime: "took too long and was ended"
            }
        }
    }

    /// Between the request to end and the kill.
    private static let patience = Duration.seconds(5)

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

    /// Runs the command once where the history no longer reaches back to the token: it must fetch anew.
    func runExpired(head: ChangeToken, oldest: ChangeToken) async throws -> End {
        try await run(
            ["expired": ["token": .string(head.description), "oldest": .string(oldest.description)]],
            ["SAFELIGHT_TOKEN": head.description, "SAFELIGHT_SEQUENCE": "\(head.sequence)", "SAFELIGHT_EXPIRED": "1"]
        )
    }

    /// Runs the command with one line on its standard input.
    func run(_ json: JSON, _ variables: [String: String]) async throws -> End {
        let line = Array((json.text + "\n").utf8)
        // Being cancelled, it ends the command and all that it started.
        return try await Waiting.atMost(time) { try await execute(line, variables) } ?? .outOfTime
    }

    private func execute(_ line: [UInt8], _ variables: [String: String]) async throws -> End {
        var options = PlatformOptions()
        // A group of its own: Ctrl-C reaches the watch alone, which lets the command finish.
        options.processGroupID = 0
        options.teardownSequence = [.gracefulShutDown(toProcessGroup: true, allowedDurationToNextStep: Self.patience)]
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
                // A command that does not read its input is within its rights.
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
