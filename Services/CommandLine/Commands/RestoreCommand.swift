import ArgumentParser
import Contracts
import Glibc
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight restore`
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restore a backup into a new library folder.",
        discussion: """
            Every file is compared with its digest. Files that are damaged or missing in the backup are listed and \
            left out; the exit status is then 3, and importing the same files again completes the library. The new \
            library starts a new history: requests with tokens of the old library fail with token_expired, and clients \
            that follow changes must fetch again. The services need not run.
            """
    )

    @Argument(help: "Folder of the backup.")
    var backup: String

    @Option(help: "Folder of the new library: a new one, or an empty one.")
    var library: String

    @Flag(help: "Write JSON.")
    var json = false

    func run() async throws {
        try await ServiceCommand.run(
            "catalog",
            ["restore", ServicePaths.absolute(backup), "--library", ServicePaths.absolute(library)]
                + (json ? ["--json"] : []),
            Output(json: json)
        )
    }
}
