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

    @Argument(help: "Asset: its identifier, its file name, or @3 of the last listing.", completion: Completions.assets)
    var id: String

    @Option(
        name: .shortAndLong,
        help: "Output file, whose extension selects the format; - for standard output. Default: <id>.jpg."
    )
    var output: String?

    @Option(help: ArgumentHelp("Size in pixels that the image must fit into, or max.", valueName: "WxH|N|max"))
    var size = "512"

    @Flag(help: "Fill this size instead of fitting into it: enlarge, and cut off edges, if necessary.")
    var fill = false

    @Flag(help: "Enlarge an image that is smaller than this size.")
    var exact = false

    @Flag(help: "Enlarge nothing, and with --fill cut nothing off.")
    var fast = false

    @Flag(help: "Use the original, without edits.")
    var original = false

    @Flag(help: "Save high dynamic range where the asset has it: in avif, or in jpeg as a gain map.")
    var hdr = false

    @Option(parsing: .unconditional, help: ArgumentHelp("Of a video: the frame at this time.", valueName: "seconds"))
    var at: Double?

    @Option(help: "Image format: jpeg, webp, png or avif. Default: that of the output file's extension.")
    var format: DeliveredFormat?

    @Option(help: "Quality of lossy formats, 1 to 100.")
    var quality = 85

    @OptionGroup var downloads: DownloadOptions

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { [.thumbnailer] }

    func validate() throws {
        guard (1...100).contains(quality) else { throw ValidationError("--quality must be a number from 1 to 100") }
        guard at.map({ (0...1e9).contains($0) }) ?? true else { throw ValidationError("--at is a number of seconds") }
    }

    func check() throws {
        guard !exact || !fast else { throw CommandFailure.usage("--exact and --fast exclude each other") }
        _ = try Self.size(size)
        _ = try Self.format(format, of: output)
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let id = try await AssetArguments.readOne(id, in: library)
        let asset = try await library.namedAsset(id, members: AssetMembers.image + ["mediaType"])
        guard at == nil || asset.mediaType == .video else {
            throw CommandFailure.usage("--at is for videos, and \(asset.id) is not a video")
        }
        let request = try request(asset)
        let (result, image) = try await library.image(request, downloads, output)
        let file = self.output ?? "\(asset.id).\(request.format.fileExtension)"
        try OutputFile.write(image, to: file)
        guard file != "-" else { return }
        var json = result.json.objectValue ?? [:]
        json["file"] = .string(file)
        try output.result(.object(json)) {
            ["\(file.printable): \(result.pixelWidth) x \(result.pixelHeight) pixels"]
        }
    }

    func request(_ asset: Asset) throws -> ImageRequest {
        var request = ImageRequest(
            asset: asset.id,
            targetSize: try Self.size(size),
            contentMode: fill ? .aspectFill : .aspectFit,
            resizeMode: fast ? .fast : .exact,
            deliveryMode: .highQualityFormat,
            version: original ? .original : .current,
            format: try Self.format(format, of: output),
            quality: quality
        )
        if !exact, !fill { request.keepSize(of: asset) }
        request.isNetworkAccessAllowed = downloads.download
        request.prefersHDR = hdr
        request.frameTime = at.map { Int64(($0 * 1_000_000).rounded()) }
        return request
    }

    /// Returns the format of a file by its extension, unless one is given.
    static func format(_ given: DeliveredFormat?, of file: String?) throws -> DeliveredFormat {
        guard let file, file != "-", let dot = file.lastIndex(of: "."), !file[dot...].contains("/") else {
            return given ?? .jpeg
        }
        let fileExtension = file[file.index(after: dot)...].lowercased()
        let named =
            fileExtension == "jpeg" ? .jpeg : DeliveredFormat.allCases.first { $0.fileExtension == fileExtension }
        guard let format = given ?? named, named == nil || named == format else {
            let extensions = DeliveredFormat.allCases.map { "." + $0.fileExtension }.joined(separator: ", ")
            throw CommandFailure.usage(
                given == nil
                    ? "images cannot be written as .\(fileExtension.prefix(20)); use \(extensions), or give --format"
                    : "the file \(file.prefix(200)) is not of the format of --format"
            )
        }
        return format
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

extension DeliveredFormat: ExpressibleByArgument {
    /// The usual extension of a file's name, without the dot.
    var fileExtension: String { self == .jpeg ? "jpg" : rawValue }
}

extension ImageRequest {
    /// Requests the full size of an asset that is smaller than the target: images are not enlarged by default.
    mutating func keepSize(of asset: Asset) {
        guard case .size(let width, let height) = targetSize else { return }
        let original = version == .original ? asset.originalResource : nil
        let size = (original?.pixelWidth ?? asset.pixelWidth, original?.pixelHeight ?? asset.pixelHeight)
        if size.0 > 0, size.0 <= width, size.1 <= height { targetSize = .maximum }
    }
}
