import CMagickWand
import ImageFormats
public import PhotoModel

/// Keeps the gain map of an edited image in step with it: the list's geometry is applied to the map too.
///
/// Operations that recolour keep the map, which brightens the recoloured pixels as it did those of the original.
public enum GainMapEdit {
    /// The result for the map.
    public enum Outcome: Sendable, Hashable {
        /// The source has none.
        case none
        /// The render with the map.
        case kept([UInt8])
        /// The render stays in standard range: the list moves pixels in a way that the map does not follow, or the map
        /// is damaged.
        case dropped
    }

    /// Returns true if a file has a gain map.
    public static func isPresent(in bytes: [UInt8]) -> Bool {
        guard let header = try? ImageHeader.read(bytes) else { return false }
        return GainMapFile.find(in: bytes, header) != nil
    }

    /// Adds the gain map of a source to a render of it.
    ///
    /// - Parameters:
    ///   - list: the adjustments that were applied
    ///   - source: the file that they were applied to
    ///   - image: the render with its metadata, a JPEG in full size
    ///   - limits: limits on the source and its map
    public static func apply(
        _ list: AdjustmentList,
        to source: [UInt8],
        rendered image: [UInt8],
        limits: PixelLimits = PixelLimits()
    ) -> Outcome {
        do throws(ImagingError) {
            ImagingLibrary.enter(.reading)
            let header = try ImageProbe.header(of: source, limits: limits)
            guard GainMapFile.find(in: source, header) != nil else { return .none }
            let operations = list.ofPictures.operations.filter { !$0.isNeutral }
            guard !operations.contains(where: { [.effect, .frame].contains($0.kind.stage) }),
                let map = GainMap.read(source, header, limits: limits)
            else { return .dropped }
            ImagingLibrary.enter(.working)
            let geometry = AdjustmentGeometry(operations, width: header.pixelWidth, height: header.pixelHeight)
            let moved = try AdjustmentRendering.moved(map.wand, geometry, header)
            guard let bytes = GainMapJPEG.file(image: image, map: try map.encoded(moved), map.metadata) else {
                return .dropped
            }
            return .kept(bytes)
        } catch {
            return .dropped
        }
    }
}
