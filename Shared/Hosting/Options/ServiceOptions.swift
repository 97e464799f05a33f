public import ArgumentParser
public import Logging

/// Logging options of a service.
public struct ServiceOptions: ParsableArguments {
    @Option(
        name: .customLong("log"),
        help: "Log level: trace, debug, info, notice, warning, error or critical. (SAFELIGHT_LOG, else info)"
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
