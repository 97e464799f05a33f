import ArgumentParser
import Glibc
import Hosting
import JSONValue
import PhotoModel
import Storage

/// `catalog migrate`: moves the database of a library; `safelight library migrate` runs it.
struct MigrateCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "migrate",
        abstract: "Moves the database of a library between SQLite and PostgreSQL, with everything in it."
    )

    @Option(help: "The destination: postgresql://host/database, or sqlite for a file in the library's folder.")
    var to: String

    @OptionGroup var libraryOptions: LibraryOptions
    @OptionGroup var store: StoreOptions

    @Flag(help: "Compare all rows after the copy.")
    var verify = false

    @Flag(help: "Print JSON.")
    var json = false

    func run() throws {
        let library = try libraryOptions.resolve()
        let clock = ContinuousClock()
        var lastPrinted = clock.now
        let outcome = try LibraryMigration.run(try direction(), folder: library, verifies: verify) { table, rows in
            guard clock.now - lastPrinted >= .seconds(1) else { return }
            lastPrinted = clock.now
            let line = Array("\(table): \(rows) rows\n".utf8)
            _ = Glibc.write(2, line, line.count)
        }
        let answer: JSON = [
            "library": .string(library), "token": .string(outcome.token.description), "rows": JSON(outcome.rows),
            "verified": .bool(verify),
        ]
        let start = to == "sqlite" ? "" : " --store " + PostgreSQLLibraryDatabase.withoutPassword(to)
        print(
            json
                ? answer.text
                : "moved \(outcome.rows) rows at \(outcome.token); start it with: safelight up --library \(library)\(start)"
        )
    }

    private func direction() throws -> LibraryMigration.Direction {
        var target = StoreOptions()
        target.store = to
        if let address = try target.resolve() { return .toServer(address) }
        guard let source = try store.resolve() else {
            throw ValidationError("name the database on PostgreSQL with --store postgresql://host/database")
        }
        return .toFile(from: source)
    }
}
