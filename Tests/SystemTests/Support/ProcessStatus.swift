import Foundation
import TestSupport

/// Figures of running processes, as proc(5) reports them.
enum ProcessStatus {
    /// Returns the resident memory of a process (RSS), in KiB; 0 if it has ended.
    static func resident(of process: Int32) -> Int { kibibytes("VmRSS:", "status", process) ?? 0 }

    /// Returns the largest resident memory that a process has had, in KiB; 0 if it has ended.
    static func peakResident(of process: Int32) -> Int { kibibytes("VmHWM:", "status", process) ?? 0 }

    /// Returns the memory of a process with its part of the memory that it shares (PSS), in KiB; 0 if it has ended.
    static func proportional(of process: Int32) -> Int { kibibytes("Pss:", "smaps_rollup", process) ?? 0 }

    /// Returns the child processes of a process.
    static func children(of process: Int32) -> [Int32] {
        let tasks = (try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/task")) ?? []
        return tasks.flatMap { task in
            ((try? String(contentsOfFile: "/proc/\(process)/task/\(task)/children", encoding: .utf8)) ?? "")
                .split(separator: " ").compactMap { Int32($0) }
        }
    }

    private static func kibibytes(_ name: String, _ file: String, _ process: Int32) -> Int? {
        let text = (try? String(contentsOfFile: "/proc/\(process)/\(file)", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").first { $0.hasPrefix(name) }.flatMap { Int($0.filter(\.isNumber)) }
    }
}

extension SafelightFixture {
    /// Returns the resident memory of a service, in KiB; 0 if it does not run.
    func residentMemory(_ service: Service) -> Int {
        program(service).map { ProcessStatus.resident(of: $0.processIdentifier) } ?? 0
    }
}
