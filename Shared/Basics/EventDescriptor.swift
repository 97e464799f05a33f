import CLinux
import Glibc

/// A descriptor that wakes a thread waiting in `poll`: an eventfd (eventfd(2)).
public final class EventDescriptor: Sendable {
    /// Readable while the event is signalled; -1 if the process had no free descriptor, which `poll` ignores.
    public let descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))

    public init() {}

    deinit { _ = close(descriptor) }

    /// Signals the event. Several signals before ``clear()`` count as one.
    public func signal() { eventfd_write(descriptor, 1) }

    /// Clears the event.
    public func clear() {
        var count: eventfd_t = 0
        eventfd_read(descriptor, &count)
    }
}
