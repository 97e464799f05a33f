import ArgumentParser
import Contracts
import PhotoModel

/// How `export --size` makes images.
struct ExportImageOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Make images that fit into this box.", valueName: "WxH|N|max"))
    var size: String?

    @Flag(help: "Images of the original, without edits.")
    var original = false

    @Option(help: "Of images: jpeg, webp, png or avif.")
    var format = DeliveredFormat.jpeg

    @Option(help: "Of images in lossy formats, 1 to 100.")
    var quality = 85

    func validate() throws {
        guard (1...100).contains(quality) else { throw ValidationError("--quality is a number from 1 to 100") }
    }

    /// The image of an asset; nil where files are wanted.
    func request(_ asset: ObjectID) throws -> ImageRequest? {
        guard let size else { return nil }
        return ImageRequest(
            asset: asset,
            targetSize: try ThumbCommand.size(size),
            resizeMode: .fast,
            deliveryMode: .highQualityFormat,
            version: original ? .original : .current,
            format: format,
            quality: quality
        )
    }
}
