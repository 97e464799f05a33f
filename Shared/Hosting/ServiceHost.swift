import ArgumentParser
import Dispatch
import Glibc
public import Logging
import Messaging
public import ServiceLifecycle
import Synchronization

/// The life of a service: from everything bound to the last line of its log.
public enum ServiceHost {
    /// How long parts may take to stop after the first signal, in seconds; then their tasks are cancelled.
    public static let graceSeconds = 10
    private static let cancelSeconds = 3

    /// Runs the parts of a service until SIGTERM or SIGINT, until its watcher is gone (``Supervision``), or until one of
    /// them ends.
    ///
    /// The first signal stops the parts in reverse order: each finishes what it took. A second signal, or a part that
    /// does not stop within ``graceSeconds`` and three seconds more, ends the process with code 1 at once: services are
    /// safe to kill. SIGPIPE and SIGXFSZ are ignored, so that a closed pipe and a full quota are errors.
    ///
    /// - Parameters:
    ///   - name: the service.
    ///   - logger: gets the first line and the last.
    ///   - endpoints: what is bound, for the first line.
    ///   - ready: told once before the parts run: everything is bound by then.
    ///   - parts: stopped last to first; so the part that takes requests comes last.
    /// - Throws: `ExitCode.failure` where a part failed; the log says why.
    public static func run(
        name: ServiceName,
        logger: Logger,
        endpoints: [String] = [],
        ready: ReadySignal = ReadySignal(descriptor: nil),
        parts: [any Service]
    ) async throws {
        ignoreSignals()
        logger.info(
            "service started",
            metadata: [
                "service.name": "\(name.rawValue)", "service.version": "\(ServiceVersion.current)",
                "service.pid": "\(getpid())", "service.endpoints": "\(endpoints.joined(separator: ","))",
            ]
        )
        if !TrafficLimits.isInForce {
            logger.warning("connections are not bounded: libzmq does not use this program's accept4")
        }
        var configuration = ServiceGroupConfiguration(
            services: parts.map { .init(service: $0, successTerminationBehavior: .gracefullyShutdownGroup) },
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
                        await Self.lastResort(after: signals, logger)
                    }
                }
                tasks.addTask { try await group.run() }
                // The group's task decides; the one that waits for signals ends with it.
                try await tasks.next()
                continuation.finish()
                tasks.cancelAll()
            }
        } catch {
            logger.error("service failed", metadata: ["service.reason": "\(error)"])
            throw ExitCode.failure
        }
        guard let reason = reason.text.withLock({ $0 }) else {
            logger.error("service failed", metadata: ["service.reason": "a part of it ended by itself"])
            throw ExitCode.failure
        }
        logger.info("service stopped", metadata: ["service.reason": "\(reason)"])
    }

    private static func signalName(_ number: Int32) -> String {
        switch number {
        case SIGINT: "SIGINT"
        case SIGTERM: "SIGTERM"
        default: "whoever watched over it is gone"
        }
    }

    private final class Reason: Sendable {
        let text = Mutex<String?>(nil)
    }

    // After the first signal: waits for a second one or for the time, and ends the process; cancelled in the usual case.
    private static func lastResort(after signals: AsyncStream<Int32>, _ logger: Logger) async {
        let isSecond = await Waiting.atMost(.seconds(graceSeconds + cancelSeconds)) {
            for await _ in signals { return true }
            return false
        }
        guard isSecond != false, !Task.isCancelled else { return }
        let reason = isSecond == true ? "a second signal" : "parts did not stop in time"
        logger.critical("service ended hard", metadata: ["service.reason": "\(reason)"])
        _exit(1)
    }

    private static func ignoreSignals() {
        signal(SIGPIPE, SIG_IGN)
        signal(SIGXFSZ, SIG_IGN)
    }

    // Returns once the signal would be heard.
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
