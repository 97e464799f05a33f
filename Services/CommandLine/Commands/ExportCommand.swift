import ArgumentParser
import Contracts
import Hosting
import PhotoClient
import PhotoModel

/// `safelight export`
struct ExportCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "export",
        abstract: "Save the files of assets to a folder, or images of them at a given size.",
        discussion: """
            Exports the named assets, or all assets of a fetch if none is named, with the raw files of photos and the \
            videos of Live Photos. Files are verified by their SHA-256, and have their original names; no file is \
            replaced: a second IMG_1.jpg becomes "IMG_1 (2).jpg", with its raw file, its video and its sidecar, and a \
            file that exists with the same content is not written again. Only a sidecar is replaced, if an earlier \
            export of the same asset wrote it and it is unchanged. \
            With --size, images are rendered instead: with edits, or without them with --original.
            """
    )

    @Argument(help: "Asset identifiers, or - to read them from standard input.", completion: Completions.assets)
    var ids: [String] = []

    @OptionGroup var fetch: FetchOptions

    @Option(name: .shortAndLong, help: "Output folder; created if needed.")
    var output: String

    @Flag(help: "Export the edited version instead of the original.")
    var current = false

    @Flag(help: "Also write an XMP sidecar for each file: metadata, adjustment data and edit history.")
    var sidecar = false

    @OptionGroup(title: "Images") var images: ExportImageOptions

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] {
        [.catalog] + (images.size == nil ? [] : [.thumbnailer]) + (sidecar ? [.editor] : [])
    }

    func validate() throws {
        guard ids.isEmpty || fetch.isEmpty else {
            throw ValidationError("give assets, or a fetch with --where, --album and the other options, not both")
        }
        guard images.size == nil || !current else { throw ValidationError("--current cannot be combined with --size") }
    }

    func check() throws {
        _ = try fetch.fetch(of: nil)
        if let size = images.size { _ = try ThumbCommand.size(size) }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let signals = UnfinishedFiles.removeAtSignals()
        defer { withExtendedLifetime(signals) {} }
        try await export(from: library, output)
    }

    /// Exports all assets.
    ///
    /// - Parameters:
    ///   - restartTime: the time after which a service that does not answer ends the export
    ///   - sync: makes the files durable
    /// - Throws: the exit status for a partial success if some could not be exported
    func export(
        from library: PhotoLibrary,
        _ output: Output,
        restartTime: Duration = ServiceClient.restartTime,
        sync: FileSync = .system
    ) async throws {
        if ids.isEmpty {
            let fetch = try await fetch.fetch(in: library)
            var run = try ExportRun(self, library, output, restartTime, sync)
            try await run.export(fetch)
        } else {
            let ids = try await AssetArguments.read(ids, in: library)
            var run = try ExportRun(self, library, output, restartTime, sync)
            try await run.export(ids)
        }
    }
}
