public import ArgumentParser
public import Logging

/// Where the library is.
public struct LibraryOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "The folder of the library.",
            discussion: "SAFELIGHT_LIBRARY, else $XDG_DATA_HOME/safelight, else ~/.local/share/safelight."
        )
    )
    public var library: String?

    /// No flags: variables and the default.
    public init() {}

    /// The absolute path that follows; nothing is made.
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
            throw .badSetting(source: "--library", reason: "there is no HOME; say where the library is")
        }
        guard path.hasPrefix("/") else {
            throw .badSetting(source: "--library", reason: "\(path) is no absolute path")
        }
        return path
    }
}

/// How a service tells what it does.
public struct ServiceOptions: ParsableArguments {
    @Option(
        name: .customLong("log"),
        help: "How much is logged: trace, debug, info, notice, warning or error. (SAFELIGHT_LOG, else info)"
    )
    public var log: String?

    @Option(
        name: .customLong("ready-fd"),
        help: ArgumentHelp("Writes the line `ready` to this descriptor once requests are taken.", visibility: .hidden)
    )
    public var readyDescriptor: Int32?

    /// No flags: variables and defaults.
    public init() {}

    /// A logger of the level that follows.
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
                reason: "\(text) is none of \(names)"
            )
        }
        return ServiceLog.logger(label: label, level: level)
    }

    /// Where to say that the service is ready; says nothing where no descriptor was given.
    public var ready: ReadySignal { ReadySignal(descriptor: readyDescriptor) }
}
