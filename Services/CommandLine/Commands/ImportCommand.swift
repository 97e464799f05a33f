import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import SystemPackage

/// `safelight import`
struct ImportCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "import",
        abstract: "Copy photos into the library: files, and folders with all that is in them.",
        discussion: """
            Bytes that the library has already are recognised, so running it again goes on where it was stopped. \
            Broken files are named and skipped. Links below folders are not followed; hidden files, and what is clearly \
            no picture, are passed over. Ctrl-C finishes what is under way.
            """
    )

    @Argument(help: "Files and folders.")
    var paths: [String]

    @Option(help: ArgumentHelp("Put all of them into an album too; made where there is none.", valueName: "title"))
    var album: String?

    @Option(help: "Files under way at once, 1 to 64.")
    var parallel = 16

    @Flag(help: "Only list what would be imported.")
    var dryRun = false

    @Flag(name: .shortAndLong, help: "A line for each file.")
    var verbose = false

    @OptionGroup var client: ClientOptions

    func validate() throws {
        guard !paths.isEmpty else { throw ValidationError("name the files or folders to import") }
        guard (1...64).contains(parallel) else { throw ValidationError("--parallel is a number from 1 to 64") }
    }

    mutating func run() async throws {
        if dryRun { return try list(find(Output(json: client.json)), Output(json: client.json)) }
        try await connectAndRun()
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let finder = try find(output)
        let stop = StopRequest()
        let signals = StopSignals(stop)
        var report = ImportReport(total: finder.files.count, output: output, isVerbose: verbose)
        do {
            try await ImportRun(library: library, width: parallel).run(finder.files, stop: stop) { index, outcome in
                try report.take(index, finder.files[index], outcome)
            }
        } catch {
            report.clearBar()
            output.note("after \(report.imported) imported files:")
            throw error
        }
        let files = report.assets.sorted { $0.index < $1.index }.map(\.id)
        if let album { try await Self.add(files, to: album, in: library) }
        withExtendedLifetime(signals) {}
        let isStopped = stop.isRequested && report.imported + report.duplicates + report.broken < finder.files.count
        try report.finish(others: finder.others, isStopped: isStopped)
        if report.broken > 0 || isStopped || !finder.unreadable.isEmpty {
            throw ExitCode(CommandFailure.Status.partly.rawValue)
        }
    }

    private func find(_ output: Output) throws -> PictureFinder {
        var finder = PictureFinder()
        for path in paths { try finder.add(path) }
        for (path, reason) in finder.unreadable {
            output.report(CommandFailure(message: "\(path) cannot be searched: \(reason)", name: "not_read"))
        }
        return finder
    }

    private func list(_ finder: PictureFinder, _ output: Output) throws {
        for file in finder.files {
            try output.result(["file": .string(file.string)]) { [file.string.printable] }
        }
        if !output.isJSON {
            output.note(
                "would import \(Quantities.count(finder.files.count, "file")), "
                    + "\(Quantities.count(finder.others, "other")) passed over"
            )
        }
    }

    /// Puts assets at the end of an album, in the order of the files.
    private static func add(_ ids: [ObjectID], to title: String, in library: PhotoLibrary) async throws {
        guard !ids.isEmpty else { return }
        let album: ObjectID
        if let known = try await Albums.titled(title, in: library).first {
            album = known.id
        } else {
            let made = try await library.perform([.createCollection(.init(ref: "album", title: title))])
            guard let id = made.id("album") else {
                throw CommandFailure(message: "the catalog did not name the new album", name: "internal_error")
            }
            album = id
        }
        for piece in Transactions.split(ids, by: ChangeRecord.maxEntities - 1) {
            _ = try await library.perform([.updateCollection(.init(id: .id(album), add: piece.map { .id($0) }))])
        }
    }
}
