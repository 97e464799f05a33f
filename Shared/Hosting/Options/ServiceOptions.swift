public import ArgumentParser
public import Logging

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
        guard path.hasPrefix("/") else {
            throw .badSetting(source: "--library", reason: "\(path) is not an absolute path")
        }
        return path
    }
}

/// Logging options of a service.
public struct ServiceOptions: ParsableArguments {
    @Option(
        name: .customLong("log"),
        help: "Log level: trace, debug, info, notice, warning or error. (SAFELIGHT_LOG, else info)"
    )
    public var log: String?

    @Option(
        name: .customLong("ready-fd"),
        help: ArgumentHelp("Write the line `ready` to this descriptor once requests are accepted.", visibility: .hidden)
    )
    public var readyDescriptor: Int32?

    /// Creates options without flags, resolved from environment variables and defaults.
    public init() {}

    /// Returns a logger with the configured level.
    ///
    /// Throws ``HostingError/badSetting(source:reason:)``.
    public func logger(_ label: String, environment: (String) -> String? = { Environment[$0] })
        throws(HostingError) -> Logger
    {
        let text = log ?? environment("SAFELIGHT_LOG") ?? "info"
        guard let level = Logger.Level(rawValue: text.lowercased()) else {
            let names = Logger.Level.allCases.map(\.rawValue).joined(separator: ", ")
            throw .badSetting(
                source: log == nil ? "SAFELIGHT_LOG" : "--log",
                reason: "\(text) is not one of \(names)"
            )
        }
        return ServiceLog.logger(label: label, level: level)
    }

    /// The ready signal; it sends nothing if no descriptor was given.
    public var ready: ReadySignal { ReadySignal(descriptor: readyDescriptor) }
}
