import Glibc

/// A thread that owns ZeroMQ sockets, and the executor of the actors around them.
///
/// It waits in `zmq_poll` on all its sockets and one eventfd; work for its actors, messages to send and timers wake it.
/// Nothing on it may block. It lives as long as this object and the actors on it.
public final class PollThread: SerialExecutor, Sendable {
    let loop: PollLoop
    let context: MessagingContext

    /// Starts the thread; the system shows the first fifteen bytes of `name` for it.
    ///
    /// Throws ``MessagingError/noThread(reason:)`` where the system has none.
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

    // MARK: The executor

    public func enqueue(_ job: consuming ExecutorJob) {
        loop.post(UnownedJob(job))
    }

    public func asUnownedSerialExecutor() -> UnownedSerialExecutor {
        UnownedSerialExecutor(ordinary: self)
    }

    /// The answer to `assumeIsolated`, for which only a trap says no (`SerialExecutor`): the loop calls it, on the thread.
    public func checkIsolated() {
        precondition(loop.isCurrent, "this runs on the poll thread only")
    }

    public func isIsolatingCurrentContext() -> Bool? {
        loop.isCurrent
    }
}
