public import ArgumentParser
import Dispatch
import Glibc

/// The entry of a program that starts workers of itself.
public enum ServiceProgram {
    /// The hidden subcommand of workers.
    public static let workerCommand = "worker"

    /// Becomes a worker where the arguments say so, otherwise the command.
    ///
    /// A worker runs on the only thread that the process has so far: Landlock holds for the thread that asks for it and
    /// those that it starts, and Swift's concurrency starts threads before the first line of an asynchronous `main`.
    ///
    /// - Parameters:
    ///   - command: the program's commands
    ///   - worker: serves jobs and never returns
    public static func run<Command: AsyncParsableCommand & SendableMetatype>(
        _ command: Command.Type,
        worker: () -> Never
    ) -> Never {
        if CommandLine.arguments.dropFirst() == [workerCommand] { worker() }
        Task { @MainActor in
            await command.main()
            exit(0)
        }
        dispatchMain()
    }
}
