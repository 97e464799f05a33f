import Glibc

/// A thread that owns ZeroMQ sockets, and the executor of the actors that use them.
///
/// It waits in `poll` for the descriptors of all its sockets and one eventfd; jobs of its actors, messages to send and timers wake it.
/// Code on it must not block. It lives as long as this object and the actors on it.
public final class PollThread: SerialExecutor, Sendable {
    let loop: PollLoop
    let context: MessagingContext

    /// Starts the thread; the system shows the first fifteen bytes of `name` for it.
    ///
    /// Throws ``MessagingError/noThread(reason:)`` if the system cannot start one.
    public init(name: String, context: MessagingContext = .shared) throws(MessagingError) {
        self.context = context
        self.loop = try PollLoop()
        loop.setExecutor(self)
        try loop.start(name: name)
    }

    deinit { loop.stop() }

    /// Closes every socket of this thread, and with them its servers, clients, publishers and subscribers.
    public func shutdown() async {
        await loop.closeAll()
    }

    // MARK: SerialExecutor

    public func enqueue(_ job: consuming ExecutorJob) {
        loop.post(UnownedJob(job))
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// Traps outside of the poll thread, as `SerialExecutor` requires; `assumeIsolated` in the loop relies on it.
    public func checkIsolated() {
        precondition(loop.isCurrent, "called outside of the poll thread")
    }

    public func isIsolatingCurrentContext() -> Bool? {
        loop.isCurrent
    }
}
