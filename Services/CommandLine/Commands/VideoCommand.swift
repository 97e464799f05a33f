import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel
import SystemPackage

/// `safelight video`
struct VideoCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "video",
        abstract: "Show the tracks of a video, or save it, also at another size.",
        discussion: """
            With --output the video is saved so that players can start before they have read the whole file. With \
            --preset it is re-encoded: scaled down to fit into the size, upright, with date, location, camera and \
            sound. Of a Live Photo, its video is shown or saved.
            """
    )

    @Argument(help: "Asset: its identifier, its file name, or @3 of the last listing.", completion: Completions.assets)
    var id: String

    @Option(name: .shortAndLong, help: "Output file; - for standard output.")
    var output: String?

    @Option(help: "Re-encode the video: \(Self.presets).")
    var preset: String?

    @Flag(help: "Use the original, without edits.")
    var original = false

    private static let presets = VideoExportPreset.allCases.map(\.rawValue).joined(separator: ", ")

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.thumbnailer] }

    func check() throws {
        guard let preset else { return }
        guard VideoExportPreset(rawValue: preset) != nil else {
            throw CommandFailure.usage("--preset must be one of \(Self.presets)")
        }
        guard output != nil else { throw CommandFailure.usage("--preset needs --output") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let signals = UnfinishedFiles.removeAtSignals()
        defer { withExtendedLifetime(signals) {} }
        if let preset = preset.flatMap(VideoExportPreset.init), let path = self.output {
            return try await export(preset, to: path, in: library, output)
        }
        let asset = try await AssetArguments.readOne(id, in: library)
        var request = VideoPlayback(asset: asset, version: original ? .original : .current)
        request.isNetworkAccessAllowed = downloads.download
        let video = try await library.thumbnailer.ask(request, deadline: .seconds(120), downloads, output).result
        guard let path = self.output else {
            return try output.result(video.json) { Self.description(video) }
        }
        try await save(video.stream, of: video.asset, size: video.size, to: path, in: library)
        if path == "-" { return }
        var result = video.json.objectValue ?? [:]
        result["file"] = .string(path)
        try output.result(.object(result)) { ["\(path.printable): \(QuantityFormatter.bytes(video.size))"] }
    }

    /// Waits for an export and saves its file.
    private func export(
        _ preset: VideoExportPreset,
        to path: String,
        in library: PhotoLibrary,
        _ output: Output
    ) async throws {
        let version: VideoVersion = original ? .original : .current
        let asset = try await AssetArguments.readOne(id, in: library)
        var request = ExportVideo(asset: asset, preset: preset, version: version)
        request.isNetworkAccessAllowed = downloads.download
        let video = try await library.exportVideo(request) { status in
            guard output.showsProgress, status.duration > 0 else { return }
            try? Output.write("\r\u{1B}[K\(100 * status.done / status.duration) %", to: .standardError)
        }
        if output.showsProgress { try? Output.write("\r\u{1B}[K", to: .standardError) }
        do {
            try await save(video.stream ?? "", of: video.asset, size: video.size, to: path, in: library)
        } catch {
            await library.endExport(video)
            throw error
        }
        await library.endExport(video)
        if path == "-" { return }
        var result = video.json.objectValue ?? [:]
        result["file"] = .string(path)
        try output.result(.object(result)) {
            [
                "\(path.printable): \(video.pixelWidth) x \(video.pixelHeight) pixels, "
                    + QuantityFormatter.bytes(video.size)
            ]
        }
    }

    private func save(
        _ stream: String,
        of asset: ObjectID,
        size: Int64,
        to path: String,
        in library: PhotoLibrary
    ) async throws {
        if path == "-" {
            try await library.readStream(stream, of: asset, size: size) { bytes in
                try OutputFile.write(bytes, to: path)
                return true
            }
            return
        }
        let writer = try OutputFileWriter(path)
        do {
            try await library.readStream(stream, of: asset, size: size) { bytes in
                try writer.write(bytes)
                return true
            }
        } catch {
            writer.abandon()
            throw error
        }
        try writer.finish()
    }

    private static func description(_ video: VideoPlayback.Result) -> [String] {
        let seconds = "\(Double(video.duration / 1000) / 1000) s"
        let rate = video.frameRate > 0 ? ", \((video.frameRate * 100).rounded() / 100) frames per second" : ""
        var lines = [
            "\(video.mimeType.printable), \(video.pixelWidth) x \(video.pixelHeight) pixels, \(seconds)\(rate), "
                + QuantityFormatter.bytes(video.size)
        ]
        if video.isHDR { lines.append("high dynamic range: \(video.transfer.printable)") }
        for track in video.tracks {
            let profile = track.profile.map { " (\($0.printable))" } ?? ""
            let sound = track.sampleRate > 0 ? ", \(track.sampleRate) Hz, \(track.channels) channels" : ""
            lines.append("\(track.kind.printable): \(track.codec.printable)\(profile)\(sound)")
        }
        return lines
    }
}
