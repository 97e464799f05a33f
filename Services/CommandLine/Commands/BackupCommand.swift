import ArgumentParser
import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import Subprocess
import SystemPackage

/// `safelight backup`
struct BackupCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "backup",
        abstract: "Back up the library to a folder on the catalog's machine, while it is in use.",
        discussion: """
            The backup is a consistent snapshot and is verified. On the same disk as the library, files are hard links, \
            which protects against mistakes but not against a disk failure; on another disk they are copied. A second \
            backup to the same folder copies only new files and removes files that the library no longer has. If it is \
            interrupted, the previous backup stays intact. Referenced files are listed, not copied.
            """
    )

    @Argument(help: "Folder for the backup: a new one, an empty one, or an earlier backup.")
    var target: String

    @Flag(help: "Also verify the files that an earlier backup already contains.")
    var verify = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = BackupLibrary(target: ServicePaths.absolute(target), verifies: verify)
        let result = try await library.catalog.following(request, output: output)
        try output.result(result.json) {
            let kinds = [
                (result.linked, "linked"), (result.copied, "copied"), (result.present, "already present"),
                (result.referenced, "referenced and not copied"),
                (result.remote, "in the object store and not copied"), (result.removed, "removed"),
            ]
            let parts = kinds.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
            let details = parts.isEmpty ? "" : ": " + parts.joined(separator: ", ")
            return [
                "\(QuantityFormatter.count(result.resources, "resource")), \(QuantityFormatter.bytes(result.bytes))\(details); "
                    + "snapshot at \(result.token)"
            ]
        }
    }
}
