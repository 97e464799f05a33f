import Basics
import Glibc
import Testing

/// An event is readable from its first signal until it is cleared.
@Suite(.timeLimit(.minutes(1)))
struct EventDescriptorTests {
    @Test func `a descriptor is readable while its event is signalled`() {
        let event = EventDescriptor()
        func isReadable() -> Bool {
            var polled = pollfd(fd: event.descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&polled, 1, 0) == 1
        }
        #expect(!isReadable())
        event.signal()
        event.signal()
        #expect(isReadable())
        event.clear()
        #expect(!isReadable())
        event.clear()
        event.signal()
        #expect(isReadable(), "clearing an event that is not signalled has no effect on the next signal")
    }
}
