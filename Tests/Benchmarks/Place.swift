import Foundation
import Glibc
import TestSupport

/// Where programs and files of a benchmark are.
struct Place {
    /// The folder of the built services.
    let programs: String
    /// Everything that a run writes; on the disk that is measured.
    let scratch: TemporaryFolder
    /// Real photos, where there are any.
    let photos: String?

    init(programs: String?, photos: String?) throws {
        self.photos = photos ?? TestPlace.photos
        self.programs = programs ?? (Self.ownProgram as NSString).deletingLastPathComponent
        scratch = try TemporaryFolder("bench")
    }

    /// This program.
    static let ownProgram: String = {
        guard let path = realpath("/proc/self/exe", nil) else { return CommandLine.arguments[0] }
        defer { free(path) }
        return String(cString: path)
    }()

    func program(_ name: String) -> String { programs + "/" + name }

    /// A new folder in the scratch folder, readable by nobody else.
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

/// The processor time and the memory of processes.
enum ProcessTable {
    /// Seconds of processor time of a process so far, its threads and its dead children included.
    static func processorSeconds(_ process: Int32) -> Double {
        guard let text = try? String(contentsOfFile: "/proc/\(process)/stat", encoding: .utf8),
            let end = text.lastIndex(of: ")")
        else { return 0 }
        let fields = text[end...].split(separator: " ")
        guard fields.count > 15 else { return 0 }
        let ticks = fields[12...15].compactMap { Double($0) }.reduce(0, +)
        return ticks / Double(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// The same of its living threads, in the scheduler's nanoseconds; where it keeps none, in clock ticks.
    static func threadSeconds(_ process: Int32) -> Double {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        let times = tasks.compactMap { task in
            (try? String(contentsOfFile: "/proc/\(process)/task/\(task)/schedstat", encoding: .utf8))?
                .split(separator: " ").first.flatMap { Double($0) }
        }
        return times.isEmpty ? processorSeconds(process) : times.reduce(0, +) / 1e9
    }

    /// The processes that a process started itself.
    static func children(of process: Int32) -> [Int32] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return tasks.flatMap { task in
            ((try? String(contentsOfFile: "/proc/\(process)/task/\(task)/children", encoding: .utf8)) ?? "")
                .split(separator: " ").compactMap { Int32($0) }
        }
    }

    /// A process and everything that it started.
    static func family(of process: Int32) -> [Int32] { [process] + children(of: process).flatMap { family(of: $0) } }

    /// Bytes of memory, what is shared counted in parts (PSS).
    static func proportionalBytes(_ process: Int32) -> Int {
        let text = (try? String(contentsOfFile: "/proc/\(process)/smaps_rollup", encoding: .utf8)) ?? ""
        let line = text.split(separator: "\n").first { $0.hasPrefix("Pss:") } ?? ""
        return (line.split(separator: " ").compactMap { Int($0) }.first ?? 0) << 10
    }

    static func name(_ process: Int32) -> String {
        ((try? String(contentsOfFile: "/proc/\(process)/comm", encoding: .utf8)) ?? "?")
            .trimmingCharacters(in: .whitespacesAndNewlines)
    }
}
