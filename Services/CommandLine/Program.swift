import ArgumentParser
import Glibc

/// The entry point of the program.
@main
enum Program {
    static func main() async {
        do {
            let arguments = Array(CommandLine.arguments.dropFirst())
            try ArgumentBytes().check(arguments)
            try checkCommand(arguments)
            var command = try await SafelightCommand.asyncParseAsRoot()
            if var asynchronous = command as? any AsyncParsableCommand {
                try await asynchronous.run()
            } else {
                try command.run()
            }
        } catch {
            exitReporting(error)
        }
    }

    /// Refuses an unknown command with a suggestion; the parser's error only says that the argument is unexpected.
    private static func checkCommand(_ arguments: [String]) throws {
        var command: any ParsableCommand.Type = SafelightCommand.self
        for argument in arguments {
            let subcommands = command.configuration.subcommands
            if argument.hasPrefix("-") || argument == "help" || subcommands.isEmpty { return }
            if let next = subcommands.first(where: { names(of: $0).contains(argument) }) {
                command = next
                continue
            }
            // The argument may be one of the default subcommand.
            guard command.configuration.defaultSubcommand == nil else { return }
            let nearest = SpellingSuggestion.nearest(to: argument, of: subcommands.flatMap(names))
            throw CommandFailure.usage(
                "there is no command \"\(argument.prefix(80))\"; "
                    + (nearest.map { "did you mean \"\($0)\"?" } ?? "`safelight --help` lists the commands")
            )
        }
    }

    private static func names(of command: any ParsableCommand.Type) -> [String] {
        [command._commandName] + command.configuration.aliases
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
