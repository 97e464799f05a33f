import Basics
import ArgumentParser
import Dispatch
import Glibc
public import Logging
public import ServiceLifecycle
import Synchronization

/// Runs the components of a service after everything is bound, until the service has stopped.
public enum ServiceHost {
    /// The time in which components may stop after the first signal, in seconds; then their tasks are cancelled.
    public static let graceSeconds = 10
    private static let cancelSeconds = 3

    /// Runs the components of a service until SIGTERM or SIGINT, until its supervisor has ended (``Supervision``), or
    /// until one of them ends.
    ///
    /// The first signal stops the components in reverse order; each finishes the requests it has accepted. A second
    /// signal, or a component that does not stop within ``graceSeconds`` and three more seconds, ends the process at
    /// once with code 1: services are safe to kill. SIGPIPE and SIGXFSZ are ignored, so that writing to a closed pipe
    /// or beyond a file size limit fails with an error.
    ///
    /// - Parameters:
    ///   - name: the service.
    ///   - logger: receives the start and stop messages.
    ///   - endpoints: the bound addresses, for the start message.
    ///   - ready: sent once before the components run; everything is bound by then.
    ///   - endsWithComponent: true if the end of a component is not a failure.
    ///   - components: stopped last to first; the one that accepts requests comes last.
    /// - Returns: true if a component ended, false after a signal
    /// - Throws: `ExitCode.failure` if a component failed; the reason is logged.
    @discardableResult
    public static func run(
        name: ServiceName,
        logger: Logger,
        endpoints: [String] = [],
        ready: ReadySignal = ReadySignal(descriptor: nil),
        endsWithComponent: Bool = false,
        components: [any Service]
    ) async throws -> Bool {
        ignoreSignals()
        logger.info(
            "service started",
            metadata: [
                "service.name": "\(name.rawValue)", "service.version": "\(ServiceVersion.current)",
                "service.pid": "\(getpid())", "service.endpoints": "\(endpoints.joined(separator: ","))",
            ]
        )
        if !TrafficLimits.isInForce {
            logger.warning("connections are not limited: libzmq does not call this program's accept4")
        }
        var configuration = ServiceGroupConfiguration(
            services: components.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
            logger: quiet(logger)
        )
        configuration.maximumGracefulShutdownDuration = .seconds(graceSeconds)
        let group = ServiceGroup(configuration: configuration)
        let reason = Reason()
        let (signals, continuation) = AsyncStream<Int32>.makeStream(bufferingPolicy: .bufferingOldest(8))
        let sources = [await watch(SIGTERM, continuation), await watch(SIGINT, continuation)]
        let watcher = Supervision.watch { continuation.yield(SIGHUP) }
        let memory = try MemoryGuard.watch(logger)
        defer {
            memory.cancel()
            for source in sources { source.cancel() }
            watcher?.cancel()
        }
        ready.send()
        do {
            try await withThrowingTaskGroup(of: Void.self) { tasks in
                tasks.addTask {
                    for await number in signals {
                        reason.text.withLock { $0 = signalName(number) }
                        await group.triggerGracefulShutdown()
                        await Self.exitUnlessStopped(after: signals, logger)
                    }
                }
                tasks.addTask { try await group.run() }
                // The service group's task ends the run; the task that waits for signals is cancelled with it.
                try await tasks.next()
                continuation.finish()
                tasks.cancelAll()
            }
        } catch {
            logger.error("service failed", metadata: ["error": "\(error)"])
            throw ExitCode.failure
        }
        guard let reason = reason.text.withLock({ $0 }) else {
            if endsWithComponent { return true }
            logger.error("service failed", metadata: ["error": "a component ended unexpectedly"])
            throw ExitCode.failure
        }
        logger.info("service stopped", metadata: ["reason": "\(reason)"])
        return false
    }

    private static func signalName(_ number: Int32) -> String {
        switch number {
        case SIGINT: "SIGINT"
        case SIGTERM: "SIGTERM"
        default: "its supervisor has ended"
        }
    }

    private final class Reason: Sendable {
        let text = Mutex<String?>(nil)
    }

    // Waits, after the first signal, for a second one or for the deadline; then it ends the process. Its task is
    // cancelled if the components stop in time.
    private static func exitUnlessStopped(after signals: AsyncStream<Int32>, _ logger: Logger) async {
        let isSecond = await TaskDelay.withTimeout(.seconds(graceSeconds + cancelSeconds)) {
            for await _ in signals { return true }
            return false
        }
        guard isSecond != false, !Task.isCancelled else { return }
        let reason = isSecond == true ? "a second signal" : "components did not stop in time"
        logger.critical("service terminated immediately", metadata: ["reason": "\(reason)"])
        _exit(1)
    }

    private static func ignoreSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }

    // Returns once the signal source is registered.
    private static func watch(_ number: Int32, _ signals: AsyncStream<Int32>.Continuation) async
        -> any DispatchSourceSignal
    {
        let source = DispatchSource.makeSignalSource(signal: number, queue: .global())
        source.setEventHandler { signals.yield(number) }
        await withCheckedContinuation { continuation in
            source.setRegistrationHandler { continuation.resume() }
            source.resume()
        }
        return source
    }

    private static func quiet(_ logger: Logger) -> Logger {
        var quiet = logger
        quiet.logLevel = max(logger.logLevel, .warning)
        return quiet
    }
}
