import Glibc
import Synchronization
import SystemPackage

/// How far the command has got, for the line that it prints if a signal ends it.
enum InterruptedWork {
    private struct State {
        var done = 0
        let total: Int
        let noun: String
        let output: Output
    }

    private static let state = Mutex<State?>(nil)

    /// Begins to count the things that the command works on.
    static func begin(total: Int, _ noun: String, _ output: Output) {
        state.withLock { $0 = State(total: total, noun: noun, output: output) }
    }

    /// Notes the number of things that are done.
    static func reached(_ done: Int) {
        state.withLock { state in
            if state != nil { state?.done = done }
        }
    }

    /// Prints how far the work has got, unless none was begun.
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

    /// Makes the usual signals end the program with this report, as long as the result is kept.
    static func reportAtSignals() -> StopSignals {
        StopSignals { number in
            report()
            _exit(128 + number)
        }
    }
}
