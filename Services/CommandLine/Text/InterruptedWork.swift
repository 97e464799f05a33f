import Glibc
import Synchronization
import SystemPackage

/// The progress of the command, which it prints if a signal ends it.
enum InterruptedWork {
    private struct State {
        var done = 0
        let total: Int
        let noun: String
        let output: Output
    }

    private static let state = Mutex<State?>(nil)

    /// Begins to count the items that the command works on.
    static func begin(total: Int, _ noun: String, _ output: Output) {
        state.withLock { $0 = State(total: total, noun: noun, output: output) }
    }

    /// Records the number of finished items.
    static func update(_ done: Int) {
        state.withLock { state in
            if state != nil { state?.done = done }
        }
    }

    /// Prints the progress, unless no work was begun.
    static func report() {
        state.withLock { state in
            guard let state else { return }
            if state.output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
            state.output.report(
                CommandFailure(
                    message: "stopped after \(state.done) of \(QuantityFormatter.count(state.total, state.noun)); what "
                        + "was sent to the services may still be done",
                    name: "user_cancelled"
                )
            )
        }
    }

    /// Makes SIGINT, SIGTERM and SIGHUP end the program with this report, as long as the result exists.
    static func reportAtSignals() -> StopSignals {
        StopSignals { number in
            report()
            _exit(128 + number)
        }
    }
}
