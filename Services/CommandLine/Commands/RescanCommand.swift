import ArgumentParser
import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Subprocess
import SystemPackage

/// `safelight rescan`
struct RescanCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "rescan",
        abstract: "Check referenced files on disk: find changed, moved, missing and new ones.",
        discussion: """
            Moved files are recognized by their content. Files with a new modification time but the same content are \
            accepted again. Changed files are reported and never served. Missing files keep their assets. Folders that \
            cannot be read and disks that are not mounted are reported, and the files in them count as not checked, \
            not as missing. The exit status is 3 if any file is changed, missing or could not be checked.
            """
    )

    @Argument(help: "Folder to check. Default: all folders that the catalog may reference.")
    var root: String?

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = RescanLibrary(root: root.map(ServicePaths.absolute))
        let result = try await library.catalog.askWithProgress(request, output: output)
        try output.result(result.json) {
            var lines = result.moved.map { "moved     \($0.from.printable) -> \($0.to.printable)" }
            lines += result.changed.map { "changed   \($0.printable)" }
            lines += result.missing.map { "missing   \($0.printable)" }
            lines += result.unreadable.map { "unreadable  \($0.printable)" }
            let counts = [
                (result.unchanged, "unchanged"), (result.refreshed, "accepted again"), (result.movedCount, "moved"),
                (result.changedCount, "changed"), (result.missingCount, "missing"), (result.newCount, "new"),
                (result.unknown, "not checked"),
            ]
            lines.append(counts.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }.joined(separator: ", "))
            return lines
        }
        if result.changedCount + result.missingCount + result.unknown + result.unreadable.count > 0 {
            throw ExitCode(CommandFailure.Status.partly.rawValue)
        }
    }
}
