public import ArgumentParser
import Dispatch
import Glibc

/// The entry point of a program that starts itself as worker processes.
public enum ServiceProgram {
    /// The hidden subcommand for workers.
    public static let workerCommand = "worker"

    /// Runs the worker if the only argument is ``workerCommand``, otherwise the command.
    ///
    /// A worker runs on the only thread that exists so far. Landlock applies to the calling thread and the threads that
    /// it starts, but Swift concurrency starts threads before the first line of an asynchronous `main`.
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
