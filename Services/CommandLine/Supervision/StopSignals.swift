import Basics
import Dispatch
import Glibc

/// Turns SIGINT, SIGTERM and SIGHUP into a ``StopRequest``.
final class StopSignals {
    private let sources: [any DispatchSourceSignal]

    /// Handles the signals: the first one requests the stop, a second one ends the program at once.
    init(_ request: StopRequest, _ numbers: [Int32] = [SIGINT, SIGTERM, SIGHUP]) {
        sources = numbers.map { number in
            // The default action would end the process before the dispatch source is called.
            signal(number, SIG_IGN)
            let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
            source.setEventHandler {
                if request.isRequested { _exit(128 + number) }
                request.request()
            }
            source.resume()
            return source
        }
    }

    deinit { for source in sources { source.cancel() } }
}
