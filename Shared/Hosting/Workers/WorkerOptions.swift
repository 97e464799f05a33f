public import ArgumentParser

/// Resource limits of worker processes.
public struct WorkerOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Time limit of a worker for one image. (SAFELIGHT_JOB_SECONDS, else 25)",
            valueName: "seconds"
        )
    )
    public var jobSeconds: Int?

    @Option(
        name: .customLong("worker-memory-mib"),
        help: ArgumentHelp("Address space limit of a worker. (SAFELIGHT_WORKER_MEMORY_MIB)", valueName: "MiB")
    )
    public var workerMemoryMiB: Int?

    /// Less than the default deadline of requests, so that a request for an image that hangs a worker gets that error.
    public static let usualSeconds = 25

    /// Creates options without flags, resolved from environment variables and defaults.
    public init() {}

    /// Returns the limits with the configured values.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``.
    public func resolve(
        _ usual: WorkerLimits,
        environment: (String) -> String? = { Environment[$0] }
    ) throws(HostingError) -> WorkerLimits {
        var limits = usual
        limits.wallSeconds =
            try number(
                jobSeconds,
                "--job-seconds",
                "SAFELIGHT_JOB_SECONDS",
                1...3600,
                environment
            ) ?? Self.usualSeconds
        limits.cpuSeconds = limits.wallSeconds
        let memory = try number(
            workerMemoryMiB,
            "--worker-memory-mib",
            "SAFELIGHT_WORKER_MEMORY_MIB",
            256...(1 << 20),
            environment
        )
        if let memory { limits.memoryBytes = memory << 20 }
        return limits
    }

    private func number(
        _ flag: Int?,
        _ name: String,
        _ variable: String,
        _ range: ClosedRange<Int>,
        _ environment: (String) -> String?
    ) throws(HostingError) -> Int? {
        let source = flag == nil ? variable : name
        guard let text = flag.map(String.init) ?? environment(variable) else { return nil }
        guard let value = Int(text), range.contains(value) else {
            throw .badSetting(
                source: source,
                reason: "\(text) is not a number from \(range.lowerBound) to \(range.upperBound)"
            )
        }
        return value
    }
}
