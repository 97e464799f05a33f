import CProcess
import Glibc
import JSONValue

/// The command line, environment and limits of a worker process.
struct WorkerLaunch: Sendable {
    let executable: String
    let arguments: [String]
    let environment: [String]
    let limits: WorkerLimits

    // A process that decodes hostile bytes inherits only the variables that it needs, and no secrets of the service.
    private static let inherited = ["PATH", "HOME", "TMPDIR", "LANG", "TZ", "LD_LIBRARY_PATH", "OMP_NUM_THREADS"]
    private static let inheritedPrefixes = ["LC_", "MAGICK_", "SWIFT_", "TSAN_", "ASAN_", "LSAN_"]

    init(executable: String, arguments: [String], additions: [String: String], limits: WorkerLimits) {
        self.executable = executable
        self.arguments = [executable] + arguments
        self.limits = limits
        // Crashes are expected here; printing a backtrace would take the time of the job.
        var variables = ["SWIFT_BACKTRACE": "enable=no"]
        for (name, value) in Environment.current
        where Self.inherited.contains(name) || Self.inheritedPrefixes.contains(where: name.hasPrefix) {
            variables[name] = value
        }
        variables.merge(additions) { $1 }
        variables[WorkerProcess.limitsVariable] = limits.json.text
        environment = variables.map { "\($0.key)=\($0.value)" }.sorted()
    }

    /// Starts the process; returns its id, or -1 with `errno` set.
    func spawn(input: Int32, output: Int32) -> Int32 {
        var system = limits.system
        return withCStrings(arguments) { arguments in
            withCStrings(environment) { environment in
                safelight_spawn(executable, arguments, environment, input, output, &system)
            }
        }
    }

    private func withCStrings<Value>(
        _ strings: [String],
        _ body: (UnsafePointer<UnsafeMutablePointer<CChar>?>) -> Value
    ) -> Value {
        let copies = strings.map { strdup($0) } + [nil]
        defer { for copy in copies { free(copy) } }
        return copies.withUnsafeBufferPointer { buffer in
            // Never empty, because of the terminator.
            buffer.baseAddress.map(body) ?? body([nil])
        }
    }
}
