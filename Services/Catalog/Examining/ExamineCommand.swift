import ArgumentParser
import Hosting
import JSONValue

/// `catalog examine`: what `safelight doctor` asks about a library; changes nothing.
struct ExamineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "examine",
        abstract: "Compares the database of a library with its files, beside a running catalog or without one.",
        discussion: "Writes one JSON line; with --deep lines of progress before it."
    )

    @OptionGroup var libraryOptions: LibraryOptions

    @Flag(help: "Read every file and check its bytes.")
    var deep = false

    func run() throws {
        let clock = ContinuousClock()
        var last = clock.now
        let examination = Examination(
            folder: try libraryOptions.resolve(),
            isDeep: deep,
            now: CatalogSurroundings().now()
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
