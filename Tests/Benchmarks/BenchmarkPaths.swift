import Foundation
import Glibc
import TestSupport

/// The paths of a benchmark's programs and files.
struct BenchmarkPaths {
    /// The folder of the built services.
    let programs: String
    /// The folder of all files that a run writes, on the disk that is measured.
    let scratch: TemporaryFolder
    /// A folder with real photos; nil if there is none.
    let photos: String?

    init(programs: String?, photos: String?) throws {
        self.photos = photos ?? TestPaths.photos
        self.programs = programs ?? (Self.ownProgram as NSString).deletingLastPathComponent
        scratch = try TemporaryFolder("bench")
    }

    /// The path of this program.
    static let ownProgram: String = {
        guard let path = realpath("/proc/self/exe", nil) else { return CommandLine.arguments[0] }
        defer { free(path) }
        return String(cString: path)
    }()

    func program(_ name: String) -> String { programs + "/" + name }

    /// Creates a folder in the scratch folder with access for its owner only.
    func folder(_ name: String) throws -> String {
        let path = scratch.file(name)
        try FileManager.default.createDirectory(
            atPath: path,
            withIntermediateDirectories: true,
            attributes: [.posixPermissions: 0o700]
        )
        return path
    }
}

/// The processor time and memory of processes.
enum ProcessTable {
    /// Returns the processor time of a process so far, in seconds, with its threads and reaped children.
    static func processorSeconds(_ process: Int32) -> Double {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return 0 }
        let fields = text[end...].split(separator: " ")
        guard fields.count > 15 else { return 0 }
        let ticks = fields[12...15].compactMap { Double($0) }.reduce(0, +)
        return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// Returns the processor time of a process's living threads, in seconds: from the scheduler's nanoseconds or,
    /// without those, from clock ticks.
    static func threadSeconds(_ process: Int32) -> Double {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        let times = tasks.compactMap { task in
            (try? String(contentsOfFile: "/proc/\(process)/task/\(task)/schedstat", encoding: .utf8))?
                .split(separator: " ").first.flatMap { Double($0) }
        }
        return times.isEmpty ? processorSeconds(process) : times.reduce(0, +) / 1e9
    }

    /// Returns the direct children of a process.
    static func children(of process: Int32) -> [Int32] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return tasks.flatMap { task in
            ((try? String(contentsOfFile: "/proc/\(process)/task/\(task)/children", encoding: .utf8)) ?? "")
                .split(separator: " ").compactMap { Int32($0) }
        }
    }

    /// Returns a process and all its descendants.
    static func family(of process: Int32) -> [Int32] { [process] + children(of: process).flatMap { family(of: $0) } }

    /// Returns the memory of a process in bytes, with shared pages counted proportionally (PSS).
    static func proportionalBytes(_ process: Int32) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(process)/smaps_rollup", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("Pss:") } ?? ""
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
    }

    /// Returns the resident memory of a process in bytes; 0 if it has ended.
    static func residentBytes(_ process: Int32) -> Int { status("VmRSS:", process) << 10 }

    /// Returns the largest resident memory of a process since its start, or since ``resetPeak(_:)``, in bytes.
    static func peakBytes(_ process: Int32) -> Int { status("VmHWM:", process) << 10 }

    /// Sets the peak of the resident memory to its current size (proc_pid_clear_refs(5)).
    static func resetPeak(_ process: Int32) throws {
        try Data("5".utf8).write(to: URL(fileURLWithPath: "/proc/\(process)/clear_refs"))
    }

    private static func status(_ name: String, _ process: Int32) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix(name) } ?? ""
        return line.split(whereSeparator: \.isWhitespace).compactMap { Int($0) }.first ?? 0
    }

    static func name(_ process: Int32) -> String {
        ((try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)) ?? "?")
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
