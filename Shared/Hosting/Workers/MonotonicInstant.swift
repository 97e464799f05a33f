import Basics
import Glibc

/// An instant of the monotonic clock.
struct MonotonicInstant: Comparable {
    let microseconds: Int64

    static func now() -> MonotonicInstant {
        MonotonicInstant(microseconds: MonotonicClock.system.nowMicroseconds())
    }

    func after(microseconds: Int64) -> MonotonicInstant {
        let (sum, overflow) = self.microseconds.addingReportingOverflow(microseconds)
        return MonotonicInstant(microseconds: overflow ? .max : sum)
    }

    func after(seconds: Int) -> MonotonicInstant {
        let (product, overflow) = Int64(seconds).multipliedReportingOverflow(by: 1_000_000)
        return after(microseconds: overflow ? .max : product)
    }

    /// The milliseconds from now, rounded up, as the timeout of `poll`.
    var pollTimeout: Int32 {
        let left = max(0, microseconds - Self.now().microseconds)
        return Int32(clamping: left / 1000 + (left % 1000 == 0 ? 0 : 1))
    }

    static func < (left: MonotonicInstant, right: MonotonicInstant) -> Bool { left.microseconds < right.microseconds }
}

extension EventDescriptor {
    /// Waits until it is signalled, and clears it, or until a time is reached; nil for no limit.
    func wait(until: MonotonicInstant? = nil) {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        if poll(&polled, 1, until?.pollTimeout ?? -1) > 0 { clear() }
    }
}
