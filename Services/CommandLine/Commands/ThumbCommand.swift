public import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
public import PhotoModel

/// `safelight thumb`
struct ThumbCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "thumb",
        abstract: "Save an image of an asset at a given size."
    )

    @Argument(help: "Asset identifier.")
    var id: String

    @Option(name: .shortAndLong, help: "Output file; - for standard output. Default: <id>.<format>.")
    var output: String?

    @Option(help: ArgumentHelp("Size in pixels that the image must fit into, or max.", valueName: "WxH|N|max"))
    var size = "512"

    @Flag(help: "Fill this size instead of fitting into it.")
    var fill = false

    @Flag(help: "Produce exactly this size, by cropping or enlarging if necessary.")
    var exact = false

    @Flag(help: "Use the original, without edits.")
    var original = false

    @Option(help: ArgumentHelp("Of a video: the frame at this time.", valueName: "seconds"))
    var at: Double?

    @Option(help: "Image format: jpeg, webp, png or avif.")
    var format = DeliveredFormat.jpeg

    @Option(help: "Quality of lossy formats, 1 to 100.")
    var quality = 85

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.thumbnailer] }

    func validate() throws {
        guard (1...100).contains(quality) else { throw ValidationError("--quality must be a number from 1 to 100") }
        guard at.map({ (0...1e9).contains($0) }) ?? true else { throw ValidationError("--at is a number of seconds") }
    }

    func check() throws { _ = try request() }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let request = try request()
        let (answer, image) = try await library.image(request)
        let file = self.output ?? "\(request.asset).\(format == .jpeg ? "jpg" : format.rawValue)"
        try OutputFile.write(image, to: file)
        guard file != "-" else { return }
        var result = answer.json.objectValue ?? [:]
        result["file"] = .string(file)
        try output.result(.object(result)) {
            ["\(file.printable): \(answer.pixelWidth) x \(answer.pixelHeight) pixels"]
        }
    }

    func request() throws -> ImageRequest {
        var request = ImageRequest(
            asset: try Identifiers.one(id),
            targetSize: try Self.size(size),
            contentMode: fill ? .aspectFill : .aspectFit,
            resizeMode: exact ? .exact : .fast,
            deliveryMode: .highQualityFormat,
            version: original ? .original : .current,
            format: format,
            quality: quality
        )
        request.frameTime = at.map { Int64(($0 * 1_000_000).rounded()) }
        return request
    }

    /// Parses `640x480`, `512` for a square, or `max`.
    static func size(_ text: String) throws -> TargetSize {
        if text == "max" { return .maximum }
        let sides = text.split(separator: "x", omittingEmptySubsequences: false).map { Int($0) }
        guard (1...2).contains(sides.count), let width = sides[0], let height = sides[sides.count - 1],
            (1...TargetSize.maxSide).contains(width), (1...TargetSize.maxSide).contains(height)
        else {
            throw CommandFailure.usage(
                "\"\(text.prefix(40))\" is not a size; use 640x480, 512 or max (1 to \(TargetSize.maxSide) pixels a side)"
            )
        }
        return .size(width: width, height: height)
    }
}

extension DeliveredFormat: ExpressibleByArgument {}
