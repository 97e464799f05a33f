import ArgumentParser
import Contracts
import PhotoModel

/// The options of `export` for rendered images.
struct ExportImageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Export images that fit into this size.", valueName: "WxH|N|max"))
    var size: String?

    @Flag(help: "Render the original, without edits.")
    var original = false

    @Option(help: "Image format: jpeg, webp, png or avif.")
    var format = DeliveredFormat.jpeg

    @Option(help: "Image quality of lossy formats, 1 to 100.")
    var quality = 85

    func validate() throws {
        guard (1...100).contains(quality) else { throw ValidationError("--quality must be a number from 1 to 100") }
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
            format: format,
            quality: quality
        )
        request.keepSize(of: asset)
        return request
    }
}
