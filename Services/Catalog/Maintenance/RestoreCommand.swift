import ArgumentParser
import Glibc
import Hosting
import JSONValue
import PhotoModel

/// `catalog restore`: creates a library from a backup; `safelight restore` runs it.
struct RestoreCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restores a backup into a new folder, with a new history."
    )

    @Argument(help: "The folder of the backup.")
    var backup: String

    @OptionGroup var libraryOptions: LibraryOptions

    @Flag(help: "Print JSON.")
    var json = false

    func validate() throws {
        guard backup.hasPrefix("/") else { throw ValidationError("the backup must be an absolute path") }
    }

    func run() throws {
        let library = try libraryOptions.resolve()
        let restore = LibraryRestore(
            backup: BackupFolder(path: backup),
            library: library,
            newHistory: CatalogEnvironment().makeName()
        )
        let clock = ContinuousClock()
        var shown = clock.now
        let result = try restore.run { done, total in
            guard clock.now - shown >= .seconds(1) else { return }
            shown = clock.now
            let line = Array("\(done) of \(total) resources\n".utf8)
            _ = Glibc.write(2, line, line.count)
        }
        let answer: JSON = [
            "library": .string(library), "token": .string(result.token.description),
            "resources": JSON(result.resources), "referenced": JSON(result.referenced),
            "remote": JSON(result.remote),
        ]
        print(
            json
                ? answer.text
                : "restored \(result.resources) resources into \(library), history \(result.token.library); "
                    + (result.remote == 0
                        ? "" : "\(result.remote) of them are in the object store only: start it with --object-store; ")
                    + "start it with: safelight up --library \(Self.shellWord(library))"
        )
    }

    /// Returns a text as one word of a shell's command.
    private static func shellWord(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.unicodeScalars.allSatisfy { scalar in
                scalar.properties.isAlphabetic || "0123456789/._-+,:@%=".unicodeScalars.contains(scalar)
            }
        return isPlain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
