import Basics
import Dispatch
import Glibc

/// A one-time request to stop that any number of tasks can wait for.
final class StopRequest: Sendable {
    private let event = OneTimeEvent()

    var isRequested: Bool { event.hasHappened }

    func request() { event.signal() }

    /// Returns when the stop is requested or the task is cancelled.
    func wait() async { await event.waitUnlessCancelled() }

    /// Waits for the request with a time limit.
    ///
    /// - Returns: true if the stop was requested
    func wait(withTimeout time: Duration) async -> Bool {
        await TaskDelay.withTimeout(time) { await self.wait() }
        return isRequested
    }
}
