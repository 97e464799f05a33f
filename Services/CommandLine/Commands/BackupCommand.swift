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

            Files that are damaged or missing in the library are listed, all others are backed up, and the exit \
            status is 3. An intact copy of such a file in the earlier backup is kept.
            """
    )

    @Argument(help: "Folder for the backup: a new one, an empty one, or an earlier backup.")
    var target: String

    @Flag(help: "Also verify the files that an earlier backup already contains.")
    var verify = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = BackupLibrary(target: ServicePaths.absolute(target), verifies: verify)
        let result = try await library.catalog.askWithProgress(request, output: output)
        try output.result(result.json) {
            let kinds = [
                (result.linked, "linked"), (result.copied, "copied"), (result.present, "already present"),
                (result.referenced, "referenced and not copied"),
                (result.remote, "in the object store and not copied"), (result.removed, "removed"),
            ]
            let parts = kinds.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
            let details = parts.isEmpty ? "" : ": " + parts.joined(separator: ", ")
            return Self.damageLines(of: result) + [
                "\(QuantityFormatter.count(result.resources, "resource")), \(QuantityFormatter.bytes(result.bytes))\(details); "
                    + "snapshot at \(result.token)"
            ]
        }
        if result.damaged > 0 { throw ExitCode(CommandFailure.Status.partly.rawValue) }
    }

    /// Returns the lines about files that are damaged or missing in the library.
    private static func damageLines(of result: BackupLibrary.Result) -> [String] {
        guard result.damaged > 0 else { return [] }
        let files = result.damagedFiles.map { file in
            let digest = file.digest
            let path = "resources/\(digest.prefix(2))/\(digest.dropFirst(2).prefix(2))/\(digest)"
            let state = file.isInBackup ? "the backup keeps \(path)" : "not in the backup, SHA-256 \(digest)"
            let name = (file.filename ?? "a file").printable
            return "damaged  \(name) of \(file.asset?.description ?? "no asset"): \(state)"
        }
        return files + [
            "\(QuantityFormatter.count(result.damaged, "file")) damaged or missing in the library: check its disk, and "
                + "import the same files again; take those that the backup keeps from the backup"
        ]
    }
}
