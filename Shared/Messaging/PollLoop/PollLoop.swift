import Basics
import CZeroMQ
import Glibc
import Synchronization

/// The events that a socket owner waits for next, returned by each pass over it.
struct PollInterest {
    var wantsInput = true
    var wantsOutput = false
    /// True if there is more work now, to be done after the passes over the other owners of this thread.
    var hasMoreWork = false
    /// Microseconds until the next pass, regardless of events.
    var wakeAfter: Int64?
}

/// Wakes one socket owner on the poll thread; cheap if it is already awake.
final class PollWakeup: Sendable {
    private static let counter = Atomic<UInt64>(0)

    fileprivate let isSignaled = Atomic(false)
    /// Identifies the owner. The address of an object would not: it may be reused before the identity is compared.
    fileprivate let number = counter.add(1, ordering: .relaxed).newValue
    private let loop: PollLoop

    fileprivate init(_ loop: PollLoop) { self.loop = loop }

    func signal() {
        if !isSignaled.exchange(true, ordering: .sequentiallyConsistent) { loop.wake() }
    }

    fileprivate func clear() -> Bool { isSignaled.exchange(false, ordering: .sequentiallyConsistent) }
}

/// The functions of a registered socket owner.
private struct OwnerFunctions: Sendable {
    let wakeup: PollWakeup
    /// Returns the handles of the owner's current socket; called on the thread.
    let handles: @Sendable () -> PollHandles
    /// Polls the owner once, on the thread; returns `nil` if the owner was deallocated.
    let poll: @Sendable (_ hasEvents: Bool) -> PollInterest?
    /// Asks the owner to close, when the thread closes everything.
    let close: @Sendable () -> Void
    /// Closes the sockets after the owner was removed; runs on the poll thread, regardless of which thread released the
    /// owner.
    let closeSocket: @Sendable () -> Void
}

/// The loop of a ``PollThread``: waits for the sockets of their owners, and runs passes over them and jobs of actors.
///
/// Only the thread uses state outside of the lock.
final class PollLoop: Sendable {
    private struct Shared {
        weak var executor: PollThread?
        var jobs: [UnownedJob] = []
        var registering: [OwnerFunctions] = []
        var deregistering: Set<UInt64> = []
        var closers: [CheckedContinuation<Void, Never>] = []
        var isClosed = false
        var isStopped = false

        /// True if there is work for which the thread must not sleep.
        var isBusy: Bool {
            !jobs.isEmpty || !registering.isEmpty || !deregistering.isEmpty || !closers.isEmpty || isStopped
        }
    }

    private let shared = Mutex(Shared())
    private let isAwake = Atomic(false)
    private let thread = Atomic<UInt>(0)
    private let wakeup = EventDescriptor()

    init() throws(MessagingError) {
        guard wakeup.descriptor >= 0 else { throw .noThread(reason: String(cString: strerror(errno))) }
    }

    var isCurrent: Bool { thread.load(ordering: .relaxed) == pthread_self() }

    func setExecutor(_ executor: PollThread) { shared.withLock { $0.executor = executor } }

    /// Starts the thread with all signals blocked: other threads handle them, and each would interrupt libzmq's calls.
    func start(name: String) throws(MessagingError) {
        var all = sigset_t()
        var before = sigset_t()
        sigfillset(&all)
        pthread_sigmask(SIG_SETMASK, &all, &before)
        defer { pthread_sigmask(SIG_SETMASK, &before, nil) }
        var number = pthread_t()
        let start = Unmanaged.passRetained(Start(loop: self, name: name))
        let status = pthread_create(
            &number,
            nil,
            { hint in
                guard let hint else { return nil }
                let start = Unmanaged<Start>.fromOpaque(hint).takeRetainedValue()
                safelight_name_thread(String(decoding: start.name.utf8.prefix(15), as: UTF8.self))
                start.loop.run()
                return nil
            },
            start.toOpaque()
        )
        guard status == 0 else {
            start.release()
            throw .noThread(reason: String(cString: strerror(status)))
        }
        pthread_detach(number)
    }

    private final class Start {
        let loop: PollLoop
        let name: String

        init(loop: PollLoop, name: String) {
            self.loop = loop
            self.name = name
        }
    }

    // MARK: From any thread

    func post(_ job: UnownedJob) {
        shared.withLock { $0.jobs.append(job) }
        wake()
    }

    func makeWakeup() -> PollWakeup { PollWakeup(self) }

    /// Registers the owner of a socket. Must be the last statement of the owner's initialiser.
    ///
    /// The owner is not retained: its `deinit` removes the registration, and then the socket is closed on this thread.
    func add<Boxed: ~Copyable>(_ owner: some SocketOwner, _ box: SocketBox<Boxed>, _ wakeup: PollWakeup) {
        let functions = OwnerFunctions(
            wakeup: wakeup,
            handles: { box.handles },
            poll: { [weak owner] hasEvents in
                owner.map { owner in owner.assumeIsolated { $0.poll(hasEvents: hasEvents) } }
            },
            close: { [weak owner] in owner?.assumeIsolated { $0.closeNow() } },
            closeSocket: { box.close() }
        )
        shared.withLock { $0.registering.append(functions) }
        wakeup.signal()
    }

    func remove(_ wakeup: PollWakeup) {
        shared.withLock { _ = $0.deregistering.insert(wakeup.number) }
        wake()
    }

    func wake() {
        guard !isAwake.exchange(true, ordering: .sequentiallyConsistent) else { return }
        wakeup.signal()
    }

    func closeAll() async {
        await withCheckedContinuation { continuation in
            shared.withLock {
                $0.isClosed = true
                $0.closers.append(continuation)
            }
            wake()
        }
    }

    func stop() {
        shared.withLock { $0.isStopped = true }
        wake()
    }

    // MARK: On the thread

    private struct Registration {
        let owner: OwnerFunctions
        var interest = PollInterest()
        var wakeAt: Int64?
        var isReady = false
        /// True if the monitor has events, or was never read: libzmq signals nothing before the first read.
        var hasEvents = true
        /// True if the socket was used since it was last asked whether it is ready.
        var wasUsed = true
    }

    private func run() {
        thread.store(pthread_self(), ordering: .relaxed)
        var registrations: [Registration] = []
        var descriptors: [pollfd] = []
        while true {
            // Actors may use their sockets in jobs.
            if runJobs() { for index in registrations.indices { registrations[index].wasUsed = true } }
            guard register(&registrations) else { return }
            wait(&registrations, &descriptors)
            let now = MonotonicClock.system.nowMicroseconds()
            for index in registrations.indices {
                let isDue = registrations[index].wakeAt.map { $0 <= now } ?? false
                let wasSignaled = registrations[index].owner.wakeup.clear()
                guard registrations[index].isReady || registrations[index].interest.hasMoreWork || isDue || wasSignaled
                else { continue }
                registrations[index].wasUsed = true
                if let interest = registrations[index].owner.poll(registrations[index].hasEvents) {
                    registrations[index].interest = interest
                    // An owner that does not receive yet has not read the events.
                    if interest.wantsInput { registrations[index].hasEvents = false }
                    registrations[index].wakeAt = interest.wakeAfter.map { now.addingClamped(max($0, 0)) }
                } else {
                    registrations[index].interest = PollInterest(wantsInput: false)
                    registrations[index].wakeAt = nil
                }
            }
        }
    }

    /// Runs the jobs of actors.
    ///
    /// - Returns: true if there were any
    private func runJobs() -> Bool {
        let (jobs, executor) = shared.withLock { shared in
            defer { if !shared.jobs.isEmpty { shared.jobs = [] } }
            return (shared.jobs, shared.executor)
        }
        // A job retains its actor, and the actor its executor.
        guard !jobs.isEmpty, let executor else { return false }
        for job in jobs { job.runSynchronously(on: executor.asUnownedSerialExecutor()) }
        return true
    }

    /// Applies registrations and removals; returns `false` if the thread must end.
    private func register(_ registrations: inout [Registration]) -> Bool {
        let (registering, deregistering, closers, isClosed, isStopped) = shared.withLock { shared in
            defer {
                shared.registering = []
                shared.deregistering = []
                shared.closers = []
            }
            return (shared.registering, shared.deregistering, shared.closers, shared.isClosed, shared.isStopped)
        }
        registrations.append(contentsOf: registering.map { Registration(owner: $0) })
        if !deregistering.isEmpty {
            for registration in registrations where deregistering.contains(registration.owner.wakeup.number) {
                registration.owner.closeSocket()
            }
            registrations.removeAll { deregistering.contains($0.owner.wakeup.number) }
        }
        if isClosed || isStopped, !registrations.isEmpty {
            for registration in registrations {
                registration.owner.close()
                registration.owner.closeSocket()
            }
            registrations = []
        }
        for closer in closers { closer.resume() }
        return !isStopped
    }

    private func wait(_ registrations: inout [Registration], _ descriptors: inout [pollfd]) {
        func item(_ descriptor: Int32) -> pollfd { pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0) }
        descriptors.removeAll(keepingCapacity: true)
        descriptors.append(item(wakeup.descriptor))
        var nearest = Self.maxWait
        let now = MonotonicClock.system.nowMicroseconds()
        for index in registrations.indices {
            let handles = registrations[index].owner.handles()
            if registrations[index].wasUsed {
                registrations[index].wasUsed = false
                registrations[index].isReady = handles.isReady(for: registrations[index].interest)
            }
            descriptors.append(item(handles.descriptor))
            descriptors.append(item(handles.monitorDescriptor))
            if registrations[index].isReady || registrations[index].interest.hasMoreWork { nearest = 0 }
            if let wakeAt = registrations[index].wakeAt { nearest = min(nearest, max(0, wakeAt - now)) }
        }
        isAwake.store(false, ordering: .sequentiallyConsistent)
        let isBusy = shared.withLock(\.isBusy)
        let isSignaled = registrations.contains { $0.owner.wakeup.isSignaled.load(ordering: .sequentiallyConsistent) }
        if isBusy || isSignaled { nearest = 0 }
        let count = poll(&descriptors, nfds_t(descriptors.count), Int32((nearest + 999) / 1000))
        isAwake.store(true, ordering: .sequentiallyConsistent)
        // After a wait without events every socket is used once: see maxWait.
        guard count > 0 else {
            if nearest > 0 { for index in registrations.indices { registrations[index].wasUsed = true } }
            return
        }
        if descriptors[0].revents != 0 { wakeup.clear() }
        for index in registrations.indices {
            if descriptors[2 * index + 1].revents != 0 {
                // If the owner wants neither input nor output, the query before the next wait resets the descriptor.
                registrations[index].wasUsed = true
                let interest = registrations[index].interest
                if interest.wantsInput || interest.wantsOutput { registrations[index].isReady = true }
            }
            if descriptors[2 * index + 2].revents != 0 {
                registrations[index].hasEvents = true
                registrations[index].isReady = true
            }
        }
    }

    /// The longest wait in microseconds: libzmq does some of its own work only when an idle socket is used (#4286).
    private static let maxWait: Int64 = 1_000_000
}

// MARK: - The thread

/// A thread that owns ZeroMQ sockets, and the executor of the actors that use them.
///
/// It waits in `poll` for the descriptors of all its sockets and one eventfd. Jobs of its actors, messages to send and
/// timers wake it. Code on it must not block. It lives as long as this object and the actors on it.
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

// MARK: - Owners of sockets

/// The handles that the poll loop waits for: the socket, and optionally its monitor, which is always read.
///
/// libzmq signals a socket's descriptor once, when a command arrives at a socket that has handled all earlier ones. So
/// the descriptor may be waited for only if the last call of the socket was ``isReady(for:)``, and it returned false.
///
/// Sendable because they are handed over under a lock and the previous owner does not use them again.
struct PollHandles: @unchecked Sendable {
    private let socket: UnsafeMutableRawPointer
    /// The descriptors that become readable: the socket's, and the monitor's; -1 without a monitor.
    let (descriptor, monitorDescriptor): (Int32, Int32)

    init(_ socket: borrowing Socket, monitor: borrowing Socket) {
        self.socket = socket.pointer
        (descriptor, monitorDescriptor) = (socket.descriptor, monitor.descriptor)
    }

    init(_ socket: borrowing Socket) {
        self.socket = socket.pointer
        (descriptor, monitorDescriptor) = (socket.descriptor, -1)
    }

    /// Processes the commands that libzmq has queued for the socket, and returns whether the wanted input or output is
    /// possible.
    func isReady(for interest: PollInterest) -> Bool {
        // Nil only if the context was terminated; the next call of the owner then fails too.
        guard let events = Socket.handleCommands(of: socket) else { return true }
        return (interest.wantsInput && events & ZMQ_POLLIN != 0) || (interest.wantsOutput && events & ZMQ_POLLOUT != 0)
    }
}

extension Socket {
    /// Handles the commands that libzmq has queued for the socket, for example the reports of what peers have read;
    /// sending handles them at most once in a millisecond.
    func handleCommands() { _ = Self.handleCommands(of: pointer) }

    /// Returns the events that are then possible: `ZMQ_POLLIN`, `ZMQ_POLLOUT`; nil if the context was terminated.
    fileprivate static func handleCommands(of socket: UnsafeMutableRawPointer) -> Int32? {
        var events: Int32 = 0
        var size = MemoryLayout<Int32>.size
        return zmq_getsockopt(socket, ZMQ_EVENTS, &events, &size) == 0 ? events : nil
    }

    /// The descriptor that libzmq signals when a command arrives for the socket.
    fileprivate var descriptor: Int32 {
        var descriptor: Int32 = -1
        var size = MemoryLayout<Int32>.size
        zmq_getsockopt(pointer, ZMQ_FD, &descriptor, &size)
        return descriptor
    }
}

/// A type with handles that can be polled.
protocol Pollable: ~Copyable, SendableMetatype {
    var handles: PollHandles { get }
}

extension Socket: Pollable {
    var handles: PollHandles { PollHandles(self) }
}

extension MonitoredSocket: Pollable {
    var handles: PollHandles { PollHandles(socket, monitor: monitor) }
}

/// Holds an actor's socket, so that it is closed on the poll thread regardless of which thread releases the actor.
///
/// Sendable because the socket is used on its poll thread only: in the actor's isolation, which is that thread, and by
/// the poll loop.
final class SocketBox<Boxed: Pollable & ~Copyable>: @unchecked Sendable {
    var socket: Boxed?
    private(set) var handles: PollHandles

    init(_ socket: consuming Boxed) {
        handles = socket.handles
        self.socket = consume socket
    }

    /// Closes the socket and holds another one; on the poll thread only.
    func replace(with other: consuming Boxed) {
        handles = other.handles
        socket = consume other
    }

    /// Closes the socket; on the poll thread only.
    func close() { socket = nil }
}

/// An actor that runs on a poll thread and owns a socket.
protocol SocketOwner: Actor {
    /// Runs one pass: receives messages, sends queued ones, and returns what to wait for.
    ///
    /// - Parameter hasEvents: true if the monitor has events; false without a monitor
    func poll(hasEvents: Bool) -> PollInterest
    /// Closes the socket; does nothing if it is closed already.
    func closeNow()
}
