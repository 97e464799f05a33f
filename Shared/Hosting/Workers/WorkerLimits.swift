import CProcess
import JSONValue

/// The resource limits of a worker process.
///
/// The kernel enforces them from before the worker's first instruction.
public struct WorkerLimits: Sendable, Equatable {
    /// Address space in bytes; 0 for no limit. Builds with a sanitizer have no limit.
    public var memoryBytes = 1_610_612_736
    /// CPU time of one job in seconds, at least 1.
    public var cpuSeconds = 60
    /// Wall clock time of one job in seconds, at least 1.
    public var wallSeconds = 60
    /// Open descriptors, at least 16.
    public var openFiles = 64
    /// Maximum size of files it writes, in bytes; 0 forbids writing.
    public var fileSizeBytes = 0
    /// Number of jobs after which the worker is replaced, at least 1.
    public var jobsPerWorker = 200
    /// Maximum size of a result's attachments, in bytes.
    public var resultBytes = 256 << 20

    /// Creates the default limits.
    public init() {}

    var json: JSON {
        [
            "memoryBytes": JSON(memoryBytes), "cpuSeconds": JSON(cpuSeconds), "wallSeconds": JSON(wallSeconds),
            "openFiles": JSON(openFiles), "fileSizeBytes": JSON(fileSizeBytes),
            "jobsPerWorker": JSON(jobsPerWorker), "resultBytes": JSON(resultBytes),
        ]
    }

    init(json: JSON?) {
        self.init()
        func read(_ name: String, _ value: inout Int, from minimum: Int) {
            if let number = json?[name]?.intValue { value = max(minimum, Int(clamping: number)) }
        }
        read("memoryBytes", &memoryBytes, from: 0)
        read("cpuSeconds", &cpuSeconds, from: 1)
        read("wallSeconds", &wallSeconds, from: 1)
        read("openFiles", &openFiles, from: 16)
        read("fileSizeBytes", &fileSizeBytes, from: 0)
        read("jobsPerWorker", &jobsPerWorker, from: 1)
        read("resultBytes", &resultBytes, from: 0)
    }

    /// The limits in the form of the system calls. The kernel counts CPU time over the worker's life, so its limit is
    /// raised for each job.
    var system: safelight_limits {
        let first = UInt64(max(1, cpuSeconds)) + 5
        let (all, overflow) = first.multipliedReportingOverflow(by: UInt64(max(1, jobsPerWorker)))
        return safelight_limits(
            memory_bytes: UInt64(max(0, memoryBytes)),
            cpu_seconds: first,
            cpu_seconds_hard: overflow ? .max : all,
            open_files: UInt64(max(16, openFiles)),
            file_size_bytes: UInt64(max(0, fileSizeBytes)),
            core_bytes: 0
        )
    }
}
