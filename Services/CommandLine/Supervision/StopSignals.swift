import Basics
import Dispatch
import Glibc

/// Handles SIGINT, SIGTERM and SIGHUP instead of their default action, as long as the object exists.
///
/// A SIGHUP that was ignored when the program started, as by nohup, stays ignored.
final class StopSignals {
    private let sources: [any DispatchSourceSignal]

    /// The signals that are handled unless others are named.
    static let defaultSignals = [SIGINT, SIGTERM, SIGHUP]

    /// True if SIGHUP was ignored before the first object was created.
    static let ignoresHangup: Bool = {
        var action = sigaction()
        sigaction(SIGHUP, nil, &action)
        return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self)
            == unsafeBitCast(SIG_IGN, to: Int.self)
    }()

    /// Registers the handlers before it returns.
    ///
    /// - Parameter handle: called on a queue for each signal, with its number
    init(_ numbers: [Int32] = defaultSignals, handle: @escaping @Sendable (Int32) -> Void) {
        // The value must be read before the first change of an action.
        let isIgnored = StopSignals.ignoresHangup
        sources = numbers.filter { $0 != SIGHUP || !isIgnored }.map { number in
            // The default action would end the process before the dispatch source is called. Dispatch changes the
            // action again when it registers the source.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            let isRegistered = DispatchSemaphore(value: 0)
            source.setRegistrationHandler { isRegistered.signal() }
            source.setEventHandler { handle(number) }
            source.resume()
            isRegistered.wait()
            return source
        }
    }

    /// Turns the signals into a stop: the first one requests it, a second one ends the program at once.
    convenience init(_ request: StopRequest, _ numbers: [Int32] = defaultSignals) {
        self.init(numbers) { number in
            if request.isRequested { _exit(128 + number) }
            request.request()
        }
    }

    deinit { for source in sources { source.cancel() } }
}
