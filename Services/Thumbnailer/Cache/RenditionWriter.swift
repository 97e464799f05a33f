import Basics
import Logging
import Synchronization

/// Writes renditions to the disk cache, and logs at most once a second that it cannot.
final class RenditionWriter: Sendable {
    private let disk: RenditionDiskCache
    private let clock: MonotonicClock
    private let logger: Logger
    private let failures = Mutex(LogThrottle())

    init(_ disk: RenditionDiskCache, clock: MonotonicClock, logger: Logger) {
        self.disk = disk
        self.clock = clock
        self.logger = logger
    }

    /// Writes a rendition.
    ///
    /// - Returns: the reason if it could not be written; nil if it was, or if it exceeds the whole budget
    @discardableResult
    func write(_ rendition: EncodedRendition, _ key: RenditionKey) -> String? {
        guard let problem = disk.insert(rendition, key) else { return nil }
        if let count = failures.withLock({ $0.count(at: clock.nowMicroseconds()) }) {
            logger.warning(
                "renditions were not written to the disk cache",
                metadata: ["error": "\(problem)", "count": "\(count)"]
            )
        }
        return problem
    }
}
