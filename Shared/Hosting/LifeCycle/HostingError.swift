/// A problem that prevents a program from starting, with advice.
public enum HostingError: Error, Sendable, Equatable, CustomStringConvertible {
    /// The run folder is accessible to other users.
    case unsafeRunFolder(path: String, reason: String)
    /// The run folder does not exist, so no service can be reached.
    case noRunFolder(path: String)
    /// The run folder cannot be created or inspected.
    case runFolder(path: String, reason: String)
    /// A flag or an environment variable, named by `source`, has an invalid value.
    case badSetting(source: String, reason: String)
    /// Another process of the same service uses the address.
    case alreadyRunning(program: String, pid: Int32?, address: String)
    /// A file cannot be locked.
    case cannotLock(path: String, reason: String)

    /// Validates a setting.
    ///
    /// - Throws: ``badSetting(source:reason:)`` unless `isGood`
    public static func require(_ isGood: Bool, _ source: String, _ reason: String) throws(HostingError) {
        if !isGood { throw .badSetting(source: source, reason: reason) }
    }

    public var description: String {
        switch self {
        case .unsafeRunFolder(let path, let reason):
            "the run folder \(path) is not safe: \(reason)"
        case .noRunFolder(let path):
            "there is no run folder \(path), so no service can be reached; start them with: safelight up. If they run, "
                + "see: safelight doctor"
        case .runFolder(let path, let reason):
            "the run folder \(path) cannot be used: \(reason); choose another with --run"
        case .badSetting(let source, let reason):
            "\(source): \(reason)"
        case .alreadyRunning(let program, let pid, let address):
            "another \(program)\(pid.map { ", pid \($0)," } ?? "") is serving at \(address); "
                + "stop it or choose another --run folder"
        case .cannotLock(let path, let reason):
            "\(path) cannot be locked: \(reason)"
        }
    }
}
