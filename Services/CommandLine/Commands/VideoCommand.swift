import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight video`
struct VideoCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "video",
        abstract: "Show what a video contains, or save it.",
        discussion: """
            With --output the video is saved in an order in which players can begin at once. The film of a Live Photo is \
            a video too.
            """
    )

    @Argument(help: "Asset identifier.")
    var id: String

    @Option(name: .shortAndLong, help: "Output file; - for standard output.")
    var output: String?

    @Flag(help: "Use the original, without edits.")
    var original = false

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.thumbnailer] }

    func check() throws { _ = try Identifiers.one(id) }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = VideoPlayback(asset: try Identifiers.one(id), version: original ? .original : .current)
        let video = try await library.playback(request)
        guard let path = self.output else {
            return try output.result(video.json) { Self.description(video) }
        }
        if path == "-" {
            try await library.readStream(video) { bytes in
                try OutputFile.write(bytes, to: path)
                return true
            }
            return
        }
        let writer = try OutputFileWriter(path)
        do {
            try await library.readStream(video) { bytes in
                try writer.write(bytes)
                return true
            }
        } catch {
            writer.abandon()
            throw error
        }
        try writer.finish()
        var result = video.json.objectValue ?? [:]
        result["file"] = .string(path)
        try output.result(.object(result)) { ["\(path.printable): \(QuantityFormatter.bytes(video.size))"] }
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
