import ArgumentParser
import Contracts
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
            newHistoryID: CatalogEnvironment().makeName()
        )
        let clock = ContinuousClock()
        var lastPrinted = clock.now
        let result = try restore.run { done, total in
            guard clock.now - lastPrinted >= .seconds(1) else { return }
            lastPrinted = clock.now
            let line = Array("\(done) of \(total) resources\n".utf8)
            _ = Glibc.write(2, line, line.count)
        }
        let answer: JSON = [
            "library": .string(library), "token": .string(result.token.description),
            "resources": JSON(result.resources), "referenced": JSON(result.referenced),
            "remote": JSON(result.remote), "damaged": JSON(result.damaged),
            "damagedFiles": .array(result.damagedFiles.map(\.json)),
        ]
        print(json ? answer.text : lines(result, library).joined(separator: "\n"))
        guard result.damaged == 0 else { throw ExitCode(Self.partlyRestored) }
    }

    /// The exit status if files of the backup are damaged or missing: that of a command that was partly successful.
    private static let partlyRestored: Int32 = 3

    private func lines(_ result: LibraryRestore.Result, _ library: String) -> [String] {
        var lines = result.damagedFiles.map { file in
            // As JSON, because a name may contain control characters.
            let name = JSON.string(file.filename ?? file.digest).text
            return "not restored  \(name) of \(file.asset?.description ?? "no asset"), SHA-256 \(file.digest)"
        }
        var line = "restored \(result.resources - result.damaged) resources into \(library), "
        line += "history \(result.token.library); "
        if result.remote > 0 {
            line += "\(result.remote) of them are in the object store only: start it with --object-store; "
        }
        if result.damaged > 0 {
            line += "\(result.damaged) more are damaged or missing in the backup, and their assets cannot be opened "
            line += "until the same files are imported again; "
        }
        lines.append(line + "start it with: safelight up --library \(Self.shellWord(library))")
        return lines
    }

    /// Returns a text, quoted if necessary, as one word of a shell command.
    private static func shellWord(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.unicodeScalars.allSatisfy { scalar in
                scalar.properties.isAlphabetic || "0123456789/._-+,:@%=".unicodeScalars.contains(scalar)
            }
        return isPlain ? text : "'" + text.replacing("'", with: "'\\''") + "'"
    }
}
