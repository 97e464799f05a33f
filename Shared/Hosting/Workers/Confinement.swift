import CProcess
import Glibc
public import JSONValue

/// The confinement of a worker in addition to its limits: Landlock and a seccomp filter of system calls.
public struct Confinement: Sendable, Equatable, CustomStringConvertible {
    /// The ABI version of Landlock; 0 if the kernel does not support it.
    public var landlock: Int
    /// True if the seccomp filter is in force.
    public var hasSeccomp: Bool

    /// Confines this process permanently. The process must have only one thread.
    ///
    /// - Throws: the error number of the system call.
    static func apply() throws(SystemError) -> Confinement {
        var system = safelight_confinement()
        guard safelight_confine(&system) == 0 else { throw SystemError(number: errno) }
        return Confinement(landlock: Int(system.landlock), hasSeccomp: system.seccomp != 0)
    }

    struct SystemError: Error {
        let number: Int32
    }

    init(landlock: Int, hasSeccomp: Bool) {
        self.landlock = landlock
        self.hasSeccomp = hasSeccomp
    }

    /// Decodes the confinement that a worker reports; nil if it reports none.
    public init?(json: JSON?) {
        guard let landlock = json?["landlock"]?.intValue, let hasSeccomp = json?["seccomp"]?.boolValue else {
            return nil
        }
        self.init(landlock: Int(clamping: landlock), hasSeccomp: hasSeccomp)
    }

    var json: JSON { ["landlock": JSON(landlock), "seccomp": .bool(hasSeccomp)] }

    /// True if both are in force.
    public var isComplete: Bool { landlock > 0 && hasSeccomp }

    public var description: String {
        let files = landlock > 0 ? "Landlock (version \(landlock))" : "no Landlock, which this kernel lacks"
        return "\(files), \(hasSeccomp ? "seccomp" : "no seccomp, which this kernel lacks")"
    }

    // MARK: Attempts

    /// A job that every worker supports: it tries to open `paths` and, with `isThorough`, everything else that a worker
    /// must not be able to do.
    public static let attemptsMethod = "confinement.attempts"

    /// Tries operations that must be denied; the result has the error text or "succeeded" for each attempt and path.
    static func attempt(_ params: JSON) -> WorkerResult {
        var count = 0
        let all = UnsafeBufferPointer(start: safelight_attempts(&count), count: count)
        let paths = params["paths"]?.arrayValue?.compactMap(\.stringValue) ?? []
        let isThorough = params["isThorough"]?.boolValue == true
        var results: JSONObject = [:]
        for (index, attempt) in all.enumerated() where isThorough || index == 0 {
            let name = String(cString: attempt.name)
            for path in attempt.needs_path != 0 ? paths : [""] {
                var attempt = attempt
                let problem = safelight_try(&attempt, path)
                let text = problem == 0 ? "succeeded" : String(cString: strerror(problem))
                results[path.isEmpty ? name : "\(name): \(path)"] = .string(text)
            }
        }
        return WorkerResult(result: ["attempts": .object(results)])
    }
}
