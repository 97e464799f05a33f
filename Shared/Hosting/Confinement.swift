import CProcess
import Glibc
public import JSONValue

/// What keeps a worker from everything but its job, beside the limits: Landlock and a filter of system calls.
public struct Confinement: Sendable, Equatable, CustomStringConvertible {
    /// The version of Landlock's interface; 0 where the kernel has none.
    public var landlock: Int
    /// Whether the filter of system calls is on.
    public var hasSeccomp: Bool

    /// Confines this process for the rest of its life. It must have one thread.
    ///
    /// - Throws: the system's error number.
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

    /// What a worker reports; nil where it reports nothing.
    public init?(json: JSON?) {
        guard let landlock = json?["landlock"]?.intValue, let hasSeccomp = json?["seccomp"]?.boolValue else {
            return nil
        }
        self.init(landlock: Int(clamping: landlock), hasSeccomp: hasSeccomp)
    }

    var json: JSON { ["landlock": JSON(landlock), "seccomp": .bool(hasSeccomp)] }

    /// Whether everything is in force.
    public var isComplete: Bool { landlock > 0 && hasSeccomp }

    public var description: String {
        let files = landlock > 0 ? "Landlock (version \(landlock))" : "no Landlock, which this kernel lacks"
        return "\(files), \(hasSeccomp ? "seccomp" : "no seccomp, which this kernel lacks")"
    }

    // MARK: Attempts

    /// The job that every worker knows: `paths` are tried to be opened, and with `isThorough` everything else that a
    /// worker must not be able to do is tried.
    public static let attemptsMethod = "confinement.attempts"

    /// Tries what must be refused; the answer has, for each attempt and path, the system's error or "succeeded".
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
