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
                (result.referenced, "referenced and not copied"), (result.removed, "removed"),
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

/// `safelight restore`
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restore a backup into a new library folder.",
        discussion: """
            Every file is compared with its digest. The new library starts a new history: requests with tokens of the \
            old library fail with token_expired, and clients that follow changes must fetch again. The services need \
            not run.
            """
    )

    @Argument(help: "Folder of the backup.")
    var backup: String

    @Option(help: "Folder of the new library: a new one, or an empty one.")
    var library: String

    @Flag(help: "Write JSON.")
    var json = false

    func run() async throws {
        let program = try ServicePaths.programFolder().appending("catalog")
        let arguments =
            ["restore", ServicePaths.absolute(backup), "--library", ServicePaths.absolute(library)]
            + (json ? ["--json"] : [])
        let result = try await Subprocess.run(
            .path(program),
            arguments: Arguments(arguments),
            input: .none,
            output: .fileDescriptor(.standardOutput, closeAfterSpawningProcess: false),
            error: .fileDescriptor(.standardError, closeAfterSpawningProcess: false)
        )
        guard case .exited(0) = result.terminationStatus else {
            throw ExitCode(CommandFailure.Status.refused.rawValue)
        }
    }
}

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
        let result = try await library.catalog.following(request, output: output)
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

extension ServiceClient {
    /// Sends a long-running request and draws its progress; Ctrl-C cancels it.
    fileprivate func following<R: Request>(_ request: R, output: Output) async throws -> R.Result {
        var answer: R.Result?
        for try await event in stream(request, credit: 1 << 16) {
            switch event {
            case .notification(_, let params, _):
                guard output.showsProgress, let done = params["done"]?.intValue, let total = params["total"]?.intValue
                else { continue }
                try? Output.write("\r\u{1B}[K\(done)/\(total)", to: .standardError)
            case .answer(let reply): answer = reply.result
            }
        }
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
        guard let answer else {
            throw CommandFailure(
                message: "the connection to the catalog was lost before the operation was complete",
                name: "connection_lost"
            )
        }
        return answer
    }
}

/// Absolute paths for the services, and the folder of their executables.
enum ServicePaths {
    /// Returns the path resolved against the current directory, so that every process understands it.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return FilePath(String(cString: folder)).pushing(FilePath(path)).lexicallyNormalized().string
    }

    /// Returns the folder of this program, which also contains the executables of the services.
    ///
    /// - Throws: ``CommandFailure`` `not_found` if one of them is missing or not executable
    static func programFolder(with names: [ServiceName] = [.catalog]) throws -> FilePath {
        guard let program = realpath("/proc/self/exe", nil) else {
            throw CommandFailure(message: "the path of this executable cannot be determined", name: "not_found")
        }
        defer { free(program) }
        let folder = FilePath(String(cString: program)).removingLastComponent()
        for name in names where access(folder.appending(name.rawValue).string, X_OK) != 0 {
            throw CommandFailure(
                message: "\(folder.string) has no program \(name.rawValue); build all of them with `make build`",
                name: "not_found"
            )
        }
        return folder
    }
}
