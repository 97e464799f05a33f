import ArgumentParser
import Hosting

/// The command `catalog`: the service that is the only writer of the library.
struct CatalogCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "catalog",
        abstract: "Manages the library: photos, albums and their history.",
        version: ServiceVersion.current,
        subcommands: [ServeCommand.self, RestoreCommand.self, ExamineCommand.self, MigrateCommand.self],
        defaultSubcommand: ServeCommand.self
    )
}
