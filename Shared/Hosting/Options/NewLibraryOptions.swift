public import ArgumentParser
import Glibc
public import Storage

/// The options for beginning a library at a path where another one was before.
public struct NewLibraryOptions: ParsableArguments {
    @Flag(help: "Begin a new library in the folder although an earlier one has disappeared from it.")
    public var newLibrary = false

    @Option(
        help: ArgumentHelp(
            "Folder in which the catalog records the paths of libraries.",
            discussion:
                "SAFELIGHT_STATE, else $XDG_STATE_HOME/safelight, else .local/state/safelight in the home folder."
        )
    )
    public var state: String?

    /// Creates options without flags, resolved from environment variables and the default.
    public init() {}

    /// Returns the folder; nil without a home folder, and then nothing is recorded. Without HOME, as in a service's
    /// empty environment, the home folder is that of the user's account.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``.
    public func folder(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> String? {
        let home = (environment("HOME") ?? Self.accountHome).map { $0 + "/.local/state" }
        let path =
            state ?? environment("SAFELIGHT_STATE") ?? (environment("XDG_STATE_HOME") ?? home).map { $0 + "/safelight" }
        guard let path else { return nil }
        try HostingError.require(path.hasPrefix("/"), "--state", "\(path) is not an absolute path")
        return path
    }

    private static var accountHome: String? {
        guard let account = getpwuid(geteuid()), let path = account.pointee.pw_dir else { return nil }
        let home = String(cString: path)
        return home.hasPrefix("/") && home != "/" && access(home, W_OK) == 0 ? home : nil
    }

    /// Returns the history of the library that was at a path; nil if none is known.
    public func history(at library: String) -> String? {
        guard let folder = try? folder() else { return nil }
        return KnownLibraries(folder: folder + "/libraries").history(at: library)
    }

    /// Returns the recorded libraries; with `--new-library`, removes the record of the one at the path first.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``, or an error of the folder.
    public func resolve(
        library: String,
        environment: (String) -> String? = { Environment[$0] }
    ) throws -> KnownLibraries? {
        guard let folder = try folder(environment: environment) else { return nil }
        let known = KnownLibraries(folder: folder + "/libraries")
        if newLibrary { try known.forget(library) }
        return known
    }
}
