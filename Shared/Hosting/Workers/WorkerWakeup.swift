import CProcess
import Glibc

/// An eventfd that wakes a thread waiting in `poll`.
final class WorkerWakeup: Sendable {
    let descriptor = safelight_event()

    deinit { _ = close(descriptor) }

    func signal() {
        var one: UInt64 = 1
        _ = write(descriptor, &one, 8)
    }

    func clear() {
        var count: UInt64 = 0
        _ = read(descriptor, &count, 8)
    }

    /// Waits until it is signalled or the time is reached.
    func wait(until: MonotonicTime) {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if poll(&polled, 1, until.pollTimeout) > 0 { clear() }
    }
}
