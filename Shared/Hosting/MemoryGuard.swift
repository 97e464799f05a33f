import Dispatch
import Glibc
import Logging

/// Ends a service that holds more memory than it may, so that whoever watches over it starts it again.
///
/// Everything of ours has a bound of its own. What has none is libzmq: the parts of one message without an end are kept
/// until its last part comes, and no option limits them. A service is safe to kill at any moment, so that is the answer.
enum MemoryGuard {
    static let variable = "SAFELIGHT_SERVICE_MEMORY_MIB"
    static let usualMebibytes = 2048
    /// `EX_TEMPFAIL`: started again, it does its work.
    static let status: Int32 = 75
    private static let interval = DispatchTimeInterval.milliseconds(100)

    /// Looks ten times a second until the source is cancelled.
    static func watch(_ logger: Logger) throws(HostingError) -> any DispatchSourceTimer {
        let limit = try limit { Environment[$0] }
        let timer = DispatchSource.makeTimerSource(queue: .global(qos: .userInitiated))
        timer.schedule(deadline: .now() + interval, repeating: interval, leeway: .milliseconds(20))
        timer.setEventHandler {
            let resident = ProcessFigures.residentBytes()
            guard resident > limit else { return }
            logger.critical(
                "service ended hard",
                metadata: [
                    "service.reason": "it holds more memory than \(variable) allows",
                    "memory.bytes": "\(resident)", "memory.limit": "\(limit)",
                ]
            )
            _exit(status)
        }
        timer.resume()
        return timer
    }

    /// Bytes.
    static func limit(environment: (String) -> String?) throws(HostingError) -> Int64 {
        guard let text = environment(variable) else { return Int64(usualMebibytes) << 20 }
        guard let value = Int64(text), (64...(1 << 30)).contains(value) else {
            throw .badSetting(source: variable, reason: "\(text) is no number of MiB from 64 up")
        }
        return value << 20
    }
}
