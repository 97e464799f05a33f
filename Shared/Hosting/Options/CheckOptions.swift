public import ArgumentParser

/// The flag `--check`, the same for all services.
public struct CheckOptions: ParsableArguments {
    @Flag(
        name: .customLong("check"),
        help: "Prints the settings in force, checks them, the workers and the database, and exits."
    )
    public var isRequested = false

    /// Creates options without flags.
    public init() {}
}
