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
            Bytes that the library has already are recognised, so running it again goes on where it was stopped, whoever \
            was killed. Broken files are named and skipped. Links below folders are not followed; hidden files, and what \
            is clearly no picture, are passed over. Ctrl-C finishes what is under way.

            Files of one folder with the same stem belong together: a picture and its raw file (taken within a second), \
            a picture and its film as a Live Photo (the same content identifier, or six seconds at most), and the XMP \
            sidecars STEM.xmp and STEM.jpg.xmp, whose rating, keywords, caption and place go before the picture's own.

            With --reference nothing is copied: the files stay where they are, below a folder that the catalog was \
            started with (--import-root), and are checked at each opening; see rescan.

            A file of the library that is known to be damaged (it was found so, or was written to) is replaced when good \
            bytes for it are imported; --verify finds those that were damaged without a trace.

            Exit status: 0 all is in the library, 1 nothing could be done, 3 some files or folders could not be taken.
            """
    )

    @Argument(help: "Files and folders.")
    var paths: [String]

    @Option(help: ArgumentHelp("Put all of them into an album too; made where there is none.", valueName: "title"))
    var album: String?

    @Option(help: "Files under way at once, 1 to 64.")
    var parallel = 16

    @Flag(help: "Leave the files where they are and refer to them.")
    var reference = false

    @Flag(help: "Read the library's own file of each known picture too, and replace those that are damaged.")
    var verify = false

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
        guard dryRun else { return try await connectAndRun() }
        let output = Output(json: client.json)
        var finder = PictureFinder()
        for path in paths { try finder.add(path) }
        try list(&finder, output)
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        var finder = PictureFinder()
        for path in paths { try finder.add(path) }
        let stop = StopRequest()
        let signals = StopSignals(stop)
        // Counted first, so that the end can be foretold; nothing is kept of that.
        let total = finder.count()
        var report = ImportReport(total: total, output: output, isVerbose: verbose, keepsAssets: album != nil)
        var isAtEnd = false
        do {
            let run = ImportRun(library: library, width: parallel, isReferenced: reference, verifies: verify)
            try await run.run(
                {
                    let item = finder.next()
                    isAtEnd = item == nil
                    return item
                },
                stop: stop
            ) { index, outcome in
                try report.take(index, outcome.path, outcome.outcome)
            }
        } catch {
            report.clearBar()
            output.note("after \(report.imported) imported files:")
            throw error
        }
        let files = report.assets.sorted { $0.index < $1.index }.map(\.id)
        if let album { try await Self.add(files, to: album, in: library) }
        withExtendedLifetime(signals) {}
        let isStopped = stop.isRequested && !isAtEnd
        tell(finder.unreadable, output)
        try report.finish(others: finder.others, isStopped: isStopped)
        if report.broken > 0 || isStopped || !finder.unreadable.isEmpty {
            throw ExitCode(CommandFailure.Status.partly.rawValue)
        }
    }

    private func tell(_ unreadable: [(path: FilePath, reason: Errno)], _ output: Output) {
        for (path, reason) in unreadable {
            output.report(CommandFailure(message: "\(path) cannot be searched: \(reason)", name: "not_read"))
        }
    }

    private func list(_ finder: inout PictureFinder, _ output: Output) throws {
        var count = 0
        while let item = finder.next() {
            count += 1
            var json: JSONObject = ["file": .string(item.main.string)]
            json["alternatePhoto"] = item.alternate.map { .string($0.string) }
            json["pairedVideo"] = item.pairedVideo.map { .string($0.string) }
            json["sidecar"] = item.sidecar.map { .string($0.string) }
            let others = [item.alternate, item.pairedVideo, item.sidecar].compactMap { $0?.lastComponent?.string }
            let beside = others.isEmpty ? "" : "  + " + others.map(\.printable).joined(separator: ", ")
            try output.result(.object(json)) { [item.main.string.printable + beside] }
        }
        tell(finder.unreadable, output)
        if !output.isJSON {
            output.note(
                "would import \(Quantities.count(count, "asset")), "
                    + "\(Quantities.count(finder.others, "other")) passed over"
            )
        }
        if !finder.unreadable.isEmpty { throw ExitCode(CommandFailure.Status.partly.rawValue) }
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
