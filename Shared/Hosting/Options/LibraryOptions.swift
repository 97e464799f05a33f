public import ArgumentParser

/// The location of the library.
public struct LibraryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Folder of the library.",
            discussion: "SAFELIGHT_LIBRARY, else $XDG_DATA_HOME/safelight, else ~/.local/share/safelight."
        )
    )
    public var library: String?

    /// Creates options without flags, resolved from environment variables and the default.
    public init() {}

    /// True if a flag or a variable names the folder.
    public var isNamed: Bool { library != nil || Environment["SAFELIGHT_LIBRARY"] != nil }

    /// Returns the absolute path of the library; nothing is created.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``.
    public func resolve(environment: (String) -> String? = { Environment[$0] }) throws(HostingError) -> String {
        let path: String
        if let given = library ?? environment("SAFELIGHT_LIBRARY") {
            path = given
        } else if let data = environment("XDG_DATA_HOME") {
            path = data + "/safelight"
        } else if let home = environment("HOME") {
            path = home + "/.local/share/safelight"
        } else {
            throw .badSetting(source: "--library", reason: "HOME is not set; give the folder of the library")
        }
        guard !path.isEmpty else {
            throw .badSetting(source: "--library", reason: "the path is empty; give the folder of the library")
        }
        guard path.hasPrefix("/") else {
            throw .badSetting(source: "--library", reason: "\(path) is not an absolute path")
        }
        return path
    }
}
