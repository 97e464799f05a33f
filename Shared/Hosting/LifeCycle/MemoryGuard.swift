import Dispatch
import Glibc
import Logging

/// Ends a service that exceeds its memory limit, so that its supervisor restarts it.
///
/// All memory of the services themselves is bounded. libzmq, however, keeps the parts of a multipart message until its
/// last part arrives, and has no option to limit them. Over TCP such a connection is ended; a local client can fill the
/// memory. A service is safe to kill at any time, so it is ended.
enum MemoryGuard {
    static let variable = "SAFELIGHT_SERVICE_MEMORY_MIB"
    static let defaultMebibytes = 2048
    /// `EX_TEMPFAIL`: the service works again after a restart.
    static let status: Int32 = 75

    /// Checks resident memory ten times a second until the source is cancelled; less often while it is far below the
    /// limit, as ``pause(resident:limit:)`` says.
    static func watch(_ logger: Logger) throws(HostingError) -> any DispatchSourceTimer {
        let limit = try limit { Environment[$0] }
        let timer = DispatchSource.makeTimerSource(queue: .global(qos: .userInitiated))
        timer.schedule(deadline: .now() + pause(resident: 0, limit: limit), leeway: .milliseconds(20))
        timer.setEventHandler {
            let resident = ProcessMetrics.residentBytes()
            guard resident > limit else {
                timer.schedule(
                    deadline: .now() + pause(resident: resident, limit: limit),
                    leeway: .milliseconds(20)
                )
                return
            }
            logger.critical(
                "service terminated immediately",
                metadata: [
                    "reason": "its memory exceeds \(variable)",
                    "memory.bytes": "\(resident)", "memory.limit": "\(limit)",
                ]
            )
            _exit(status)
        }
        timer.resume()
        return timer
    }

    /// Returns the time until the next check: an idle service wakes up rarely. One peer cannot fill the rest of
    /// the limit in that time: at the default limit it would have to send more than 3.7 GB a second.
    static func pause(resident: Int64, limit: Int64) -> DispatchTimeInterval {
        switch resident {
        case ..<(limit / 8): .milliseconds(500)
        case ..<(limit / 4): .milliseconds(300)
        default: .milliseconds(100)
        }
    }

    /// Returns the limit in bytes.
    static func limit(environment: (String) -> String?) throws(HostingError) -> Int64 {
        guard let text = environment(variable) else { return Int64(defaultMebibytes) << 20 }
        guard let value = Int64(text), (64...(1 << 30)).contains(value) else {
            throw .badSetting(source: variable, reason: "\(text) is not a number of MiB, at least 64")
        }
        return value << 20
    }
}
