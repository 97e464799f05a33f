import ArgumentParser
import Hosting

/// `safelight library`, whose only subcommand is `migrate`
struct LibraryMigrateCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "library",
        abstract: "Move the database of a library.",
        subcommands: [Migrate.self]
    )

    /// `safelight library migrate`
    struct Migrate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            commandName: "migrate",
            abstract: "Move the database of a library between SQLite and PostgreSQL.",
            discussion: """
                Stop the services first. All records, outcomes of transactions and tokens stay valid, so clients \
                continue without a new fetch. The files of the photos stay in the folder. The database is copied; the \
                old one is kept, an SQLite file under the name library.sqlite.moved.
                """
        )

        @Option(help: "The destination: postgresql://host/database, or sqlite for a file in the library's folder.")
        var to: String

        @OptionGroup var library: LibraryOptions

        @OptionGroup var store: StoreOptions

        @Flag(help: "Compare all rows after the copy.")
        var verify = false

        @Flag(help: "Print JSON.")
        var json = false

        func run() async throws {
            var options = library
            options.library = options.library.map(ServicePaths.absolute)
            var arguments = ["migrate", "--to", to, "--library", try options.resolve()]
            if let source = store.store { arguments += ["--store", source] }
            arguments += (verify ? ["--verify"] : []) + (json ? ["--json"] : [])
            try await ServiceCommand.run("catalog", arguments, Output(json: json))
        }
    }
}
