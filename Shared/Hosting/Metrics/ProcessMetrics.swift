import Glibc
import JSONValue

/// Metrics of this process from the kernel.
enum ProcessMetrics {
    static func read(since started: MonotonicInstant) -> JSONObject {
        var usage = rusage()
        getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return [
            "pid": JSON(Int(getpid())),
            "uptimeSeconds": .int((MonotonicInstant.now().microseconds - started.microseconds) / 1_000_000),
            "residentBytes": .int(residentBytes()),
            "openFiles": JSON(entries(in: "/proc/self/fd")),
            "threads": JSON(entries(in: "/proc/self/task")),
            "cpuMilliseconds": .int(milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime)),
        ]
    }

    private static func milliseconds(_ time: timeval) -> Int64 {
        Int64(time.tv_sec) * 1000 + Int64(time.tv_usec) / 1000
    }

    // The second number of statm is the number of resident pages.
    static func residentBytes() -> Int64 {
        let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return 0 }
        defer { close(file) }
        var buffer = [UInt8](repeating: 0, count: 128)
        let count = Glibc.read(file, &buffer, buffer.count)
        guard count > 0 else { return 0 }
        let numbers = buffer[..<count].split(separator: UInt8(ascii: " "))
        guard numbers.count > 1, let pages = Int64(String(decoding: numbers[1], as: UTF8.self)) else { return 0 }
        return pages * Int64(sysconf(Int32(_SC_PAGESIZE)))
    }

    private static func entries(in path: String) -> Int {
        guard let folder = opendir(path) else { return 0 }
        defer { closedir(folder) }
        var count = 0
        while let entry = readdir(folder) {
            if entry.pointee.d_name.0 != CChar(UInt8(ascii: ".")) { count += 1 }
        }
        // Excludes the descriptor opened for reading the folder.
        return path.hasSuffix("fd") ? count - 1 : count
    }
}
