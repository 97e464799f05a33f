import ArgumentParser
import Glibc

/// The entry point of the program.
@main
enum Program {
    static func main() async {
        do {
            var command = try SafelightCommand.parseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            exitReporting(error)
        }
    }

    /// Prints the error and exits with the status that belongs to it.
    private static func exitReporting(_ error: any Error) -> Never {
        let output = Output(json: CommandLine.arguments.contains("--json"))
        let status = SafelightCommand.exitCode(for: error)
        switch error {
        case let code as ExitCode:
            exit(code.rawValue)
        case let failure as CommandFailure:
            output.report(failure)
            exit(failure.status.rawValue)
        case _ where status.isSuccess:
            // The help or the version was requested.
            try? output.line(SafelightCommand.message(for: error))
            exit(0)
        case _ where status == .validationFailure:
            if output.isJSON {
                output.report(.usage(SafelightCommand.message(for: error)))
            } else {
                // The usage of the command follows the first line.
                let text = SafelightCommand.fullMessage(for: error)
                output.note(text.hasPrefix("Error: ") ? "safelight: " + text.dropFirst(7) : text)
            }
            exit(CommandFailure.Status.usage.rawValue)
        default:
            let failure = CommandFailure(error)
            output.report(failure)
            exit(failure.status.rawValue)
        }
    }
}
