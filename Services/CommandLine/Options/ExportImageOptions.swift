import ArgumentParser
import Contracts
import PhotoModel

/// The options of `export` for rendered images.
struct ExportImageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Export images that fit into this size.", valueName: "WxH|N|max"))
    var size: String?

    @Flag(help: "With --size: render the original, without edits.")
    var original = false

    @Option(help: "With --size: image format, jpeg, webp, png or avif. Default: jpeg.")
    var format: DeliveredFormat?

    @Option(help: "With --size: image quality of lossy formats, 1 to 100. Default: 85.")
    var quality: Int?

    func validate() throws {
        guard size != nil || !original && format == nil && quality == nil else {
            throw ValidationError("--original, --format and --quality need --size; without it, files are exported")
        }
        guard (1...100).contains(quality ?? 85) else {
            throw ValidationError("--quality must be a number from 1 to 100")
        }
    }

    /// Returns the image request for an asset, or nil if files are exported.
    func request(_ asset: Asset) throws -> ImageRequest? {
        guard let size else { return nil }
        var request = ImageRequest(
            asset: asset.id,
            targetSize: try ThumbCommand.size(size),
            resizeMode: .exact,
            deliveryMode: .highQualityFormat,
            version: original ? .original : .current,
            format: format ?? .jpeg,
            quality: quality ?? 85
        )
        request.keepSize(of: asset)
        return request
    }
}
