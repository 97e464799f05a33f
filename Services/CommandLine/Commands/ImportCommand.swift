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
        abstract: "Import photos and videos: files, and folders with everything in them.",
        discussion: """
            Files that are already in the library are recognized by their content, so an interrupted import continues \
            when it is run again, even if a service was killed. Those in the trash are restored. Broken files are \
            reported and skipped. Symbolic links inside folders are not followed; hidden files and files that are \
            clearly not images are ignored, and the folders of libraries are skipped and reported. Ctrl-C finishes the \
            files in progress and then stops.

            Files in one folder with the same stem are imported as one asset: a photo and its raw file (taken within \
            one second of each other), a photo and its video as a Live Photo (same content identifier, or at most six \
            seconds long), and the XMP sidecars STEM.xmp and STEM.jpg.xmp, whose rating, keywords, caption and location \
            take precedence over those in the photo. If there is neither, the sidecar of the raw file or the video is \
            used. Files that you name, as for FOLDER/*, are grouped as well. A sidecar is not applied to a photo that \
            the library has already; the summary counts such sidecars. If such a photo has another raw file or video, \
            the one in the folder is imported as an asset of its own.

            With --reference nothing is copied: the files stay where they are, in a folder that the catalog was started \
            with (--import-root), and are checked each time they are opened; see rescan.

            A stored file that is known to be damaged is replaced when the same file is imported again. --verify also \
            finds damage that was not yet known.

            Exit status: 0 everything is in the library, 1 nothing was done, 3 some files or folders were not imported.
            """
    )

    @Argument(help: "Files and folders to import.")
    var paths: [String]

    @Option(
        help: ArgumentHelp("Also add the assets to this album; created if needed.", valueName: "title"),
        completion: Completions.albums
    )
    var album: String?

    @Option(
        parsing: .unconditional,
        help: "Number of files imported at the same time, 1 to 256; four small files count as one."
    )
    var parallel = 64

    @Flag(help: "Reference the files where they are instead of copying them.")
    var reference = false

    @Flag(help: "Verify the stored file of each asset that is already in the library, and replace damaged ones.")
    var verify = false

    @Flag(help: "List what would be imported, without importing it.")
    var dryRun = false

    @Flag(name: .shortAndLong, help: "Print a line for each file.")
    var verbose = false

    @OptionGroup var client: ClientOptions

    func validate() throws {
        guard !paths.isEmpty else { throw ValidationError("name the files or folders to import") }
        if let album { try AlbumLookup.checkTitle(album) }
        guard (1...256).contains(parallel) else { throw ValidationError("--parallel must be a number from 1 to 256") }
    }

    mutating func run() async throws {
        guard dryRun else { return try await connectAndRun() }
        let output = Output(json: client.json)
        var finder = try makeFinder()
        try list(&finder, output)
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        var finder = try makeFinder()
        // An ambiguous title is an error before anything is imported.
        if let album { _ = try await AlbumLookup.existing(album, in: library) }
        let stop = StopRequest()
        let signals = StopSignals(stop)
        // A separate pass counts the items without storing them, so that the remaining time can be estimated.
        let total = finder.count()
        var report = ImportReporter(total: total, output: output, isVerbose: verbose, keepsAssets: album != nil)
        var isAtEnd = false
        do {
            let run = ImportRun(
                library: library,
                maxConcurrentFiles: parallel,
                isReferenced: reference,
                verifies: verify
            )
            try await run.run(
                {
                    let item = finder.next()
                    isAtEnd = item == nil
                    return item
                },
                stop: stop
            ) { index, outcome in
                try report.record(index, outcome.path, outcome.outcome)
            }
            let ids = report.assets.sorted { $0.index < $1.index }.map(\.id)
            if let album { try await Self.add(ids, to: album, in: library) }
        } catch {
            report.clearBar()
            output.note("stopped after \(report.imported) imported files:")
            var failure = CommandFailure(error)
            if report.hasSucceeded { failure.status = .partly }
            throw failure
        }
        withExtendedLifetime(signals) {}
        let isStopped = stop.isRequested && !isAtEnd
        report.clearBar()
        let isComplete = reportSkipped(finder, output)
        try report.finish(others: finder.others, isStopped: isStopped)
        if report.broken > 0 || isStopped || !isComplete {
            throw ExitCode((report.hasSucceeded ? CommandFailure.Status.partly : .refused).rawValue)
        }
    }

    private func makeFinder() throws -> ImageFileFinder {
        var finder = ImageFileFinder()
        var arguments = ArgumentBytes()
        for path in paths { try finder.add(path, bytes: arguments.next(path)) }
        // The argument that is not UTF-8 may be the value of an option, such as --album.
        if let text = arguments.changedText { throw CommandFailure.usage("\"\(text.prefix(200))\" is not UTF-8") }
        return finder
    }

    /// Reports the files and folders that were not imported, except files that are clearly not images.
    ///
    /// - Returns: false if the user named one of them, or one cannot be read
    private func reportSkipped(_ finder: ImageFileFinder, _ output: Output) -> Bool {
        for (path, reason) in finder.unreadable {
            output.report(CommandFailure(message: "\(path) cannot be read: \(reason)", name: "not_read"))
        }
        for library in finder.libraries {
            let message = "\(library.path) is the folder of a library: it was skipped with everything in it"
            if library.isNamed {
                let advice = "; name the folders in it that have other photos"
                output.report(CommandFailure(message: message + advice, name: "not_imported"))
            } else if !output.isJSON {
                output.note(message.printable)
            }
        }
        for path in finder.unmatchedSidecars {
            let message = "\(path) is a sidecar, which is imported with its photo or video: name that too"
            output.report(CommandFailure(message: message, name: "not_imported"))
        }
        return finder.unreadable.isEmpty && finder.unmatchedSidecars.isEmpty
            && !finder.libraries.contains(where: \.isNamed)
    }

    private func list(_ finder: inout ImageFileFinder, _ output: Output) throws {
        var count = 0
        while let item = finder.next() {
            count += 1
            var json: JSONObject = ["file": .string(item.main.string)]
            json["alternatePhoto"] = item.alternate.map { .string($0.string) }
            json["pairedVideo"] = item.pairedVideo.map { .string($0.string) }
            json["sidecar"] = item.sidecar.map { .string($0.string) }
            let others = [item.alternate, item.pairedVideo, item.sidecar].compactMap { $0?.lastComponent?.string }
            let suffix = others.isEmpty ? "" : "  + " + others.map(\.printable).joined(separator: ", ")
            try output.result(.object(json)) { [item.main.string.printable + suffix] }
        }
        let isComplete = reportSkipped(finder, output)
        if !output.isJSON {
            output.note(
                "would import \(QuantityFormatter.count(count, "asset")), "
                    + "\(QuantityFormatter.count(finder.others, "other")) ignored; an import recognizes those that the "
                    + "library has already"
            )
        }
        if !isComplete { throw ExitCode((count > 0 ? CommandFailure.Status.partly : .refused).rawValue) }
    }

    /// Appends the assets to the album with this title, in the order of the files; creates the album if needed.
    private static func add(_ ids: [ObjectID], to title: String, in library: PhotoLibrary) async throws {
        guard !ids.isEmpty else { return }
        var transactions = CommandTransactions()
        let album = try await AlbumLookup.findOrCreate(title, in: library, &transactions)
        for batch in BatchedChanges.split(ids, by: ChangeRecord.maxEntities - 1) {
            _ = try await library.perform(
                [.updateCollection(.init(id: .id(album), add: batch.map { .id($0) }))],
                transaction: transactions.next()
            )
        }
    }
}
