import CProcess
import JSONValue

/// What one worker process may use.
///
/// The system enforces the limits from before the worker's first instruction.
public struct WorkerLimits: Sendable, Equatable {
    /// Address space in bytes; 0 is no limit, nor is there one in builds with a sanitizer.
    public var memoryBytes = 1_610_612_736
    /// Processor time of one job in seconds, from 1.
    public var cpuSeconds = 60
    /// Time of one job by the wall's clock in seconds, from 1.
    public var wallSeconds = 60
    /// Open descriptors, from 16.
    public var openFiles = 64
    /// The largest file that it may write, in bytes; 0 is no writing at all.
    public var fileSizeBytes = 0
    /// After this many jobs the worker is replaced, from 1.
    public var jobsPerWorker = 200
    /// The largest answer, in bytes.
    public var resultBytes = 256 << 20

    /// The usual limits.
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
        func read(_ name: String, _ value: inout Int, from least: Int) {
            if let number = json?[name]?.intValue { value = max(least, Int(clamping: number)) }
        }
        read("memoryBytes", &memoryBytes, from: 0)
        read("cpuSeconds", &cpuSeconds, from: 1)
        read("wallSeconds", &wallSeconds, from: 1)
        read("openFiles", &openFiles, from: 16)
        read("fileSizeBytes", &fileSizeBytes, from: 0)
        read("jobsPerWorker", &jobsPerWorker, from: 1)
        read("resultBytes", &resultBytes, from: 0)
    }

    /// The same as the system takes them; the processor time is that of the worker's whole life, moved on per job.
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
