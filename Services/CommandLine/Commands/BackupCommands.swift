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
        abstract: "Copy the library, while it is used, into a folder on the catalog's machine.",
        discussion: """
            The copy is of one moment, checked as a whole. On the library's own disk files are shared by hard links, \
            which guards against mistakes but not against the disk; elsewhere they are copied. Again into the same \
            folder it copies only what is new, and takes out what the library no longer has; broken off, it leaves the \
            earlier backup whole. Referenced files are named, not copied.
            """
    )

    @Argument(help: "A folder: not there yet, empty, or an earlier backup.")
    var target: String

    @Flag(help: "Also read and compare all that an earlier backup had already.")
    var verify = false

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = BackupLibrary(target: Places.absolute(target), verifies: verify)
        let result = try await library.catalog.following(request, output: output)
        try output.result(result.json) {
            let kinds = [
                (result.linked, "linked"), (result.copied, "copied"), (result.present, "there already"),
                (result.referenced, "referenced and not copied"), (result.removed, "taken out"),
            ]
            let parts = kinds.filter { $0.0 > 0 }.map { "\($0.0) \($0.1)" }
            let details = parts.isEmpty ? "" : ": " + parts.joined(separator: ", ")
            return [
                "\(Quantities.count(result.resources, "resource")), \(Quantities.bytes(result.bytes))\(details); "
                    + "the library as of \(result.token)"
            ]
        }
    }
}

/// `safelight restore`
struct RestoreCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Make a library out of a backup, in a new folder.",
        discussion: """
            Every file is compared with its digest. The new library has a history of its own: tokens of the old one are \
            answered token_expired, and whoever follows it fetches again. Nothing needs to run.
            """
    )

    @Argument(help: "The folder of the backup.")
    var backup: String

    @Option(help: "The folder of the new library: not there yet, or empty.")
    var library: String

    @Flag(help: "Write JSON.")
    var json = false

    func run() async throws {
        let program = try Places.programFolder().appending("catalog")
        let arguments =
            ["restore", Places.absolute(backup), "--library", Places.absolute(library)] + (json ? ["--json"] : [])
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
        abstract: "Compare referenced files with the disk: changed, moved, missing and new ones.",
        discussion: """
            Moved files are found again by their content, touched ones are good again. Changed files are told and never \
            served. Missing ones keep their assets. Folders that cannot be read, and disks that are not mounted, are \
            told, and nothing is concluded about what is in them. Exit status 3 where anything is changed, missing or \
            could not be looked at.
            """
    )

    @Argument(help: "A folder; without one all folders that the catalog may reference.")
    var root: String?

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = RescanLibrary(root: root.map(Places.absolute))
        let result = try await library.catalog.following(request, output: output)
        try output.result(result.json) {
            var lines = result.moved.map { "moved     \($0.from.printable) -> \($0.to.printable)" }
            lines += result.changed.map { "changed   \($0.printable)" }
            lines += result.missing.map { "missing   \($0.printable)" }
            lines += result.unreadable.map { "unreadable  \($0.printable)" }
            let counts = [
                (result.unchanged, "unchanged"), (result.refreshed, "good again"), (result.movedCount, "moved"),
                (result.changedCount, "changed"), (result.missingCount, "missing"), (result.newCount, "new"),
                (result.unknown, "could not be looked at"),
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
    /// Asks for long work and draws its progress; Ctrl-C takes it back.
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
            throw CommandFailure(message: "the catalog went away before it was done", name: "connection_lost")
        }
        return answer
    }
}

/// Folders as the services need to have them named.
enum Places {
    /// A path that means the same in every process.
    static func absolute(_ path: String) -> String {
        guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
        defer { free(folder) }
        return FilePath(String(cString: folder)).pushing(FilePath(path)).lexicallyNormalized().string
    }

    /// The services stand beside this program.
    static func programFolder(with names: [ServiceName] = [.catalog]) throws -> FilePath {
        guard let program = realpath("/proc/self/exe", nil) else {
            throw CommandFailure(message: "this program cannot find itself", name: "not_found")
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
