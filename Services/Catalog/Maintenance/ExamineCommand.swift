import ArgumentParser
import Hosting
import JSONValue

/// `catalog examine`: the consistency check behind `safelight doctor`; changes nothing.
struct ExamineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "examine",
        abstract: "Compares the database of a library with its files; the catalog may be running.",
        discussion: "Prints one JSON line; with --deep, progress lines before it."
    )

    @OptionGroup var libraryOptions: LibraryOptions
    @OptionGroup var store: StoreOptions

    @Flag(help: "Read every file and verify its digest.")
    var deep = false

    func run() throws {
        let clock = ContinuousClock()
        var last = clock.now
        let examination = ConsistencyCheck(
            folder: try libraryOptions.resolve(),
            server: try store.resolve(),
            isDeep: deep,
            now: CatalogEnvironment().now()
        )
        let result = try examination.run { done, total in
            guard deep, clock.now - last > .milliseconds(500) else { return }
            last = clock.now
            let progress: JSON = ["progress": ["done": JSON(done), "total": JSON(total)]]
            print(progress.text)
        }
        print(result.text)
    }
}
