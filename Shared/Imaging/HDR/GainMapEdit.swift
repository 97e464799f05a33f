import CMagickWand
import ImageFormats
public import PhotoModel

/// Applies the geometry of an edit to the gain map of the image.
///
/// Operations that recolour do not change the map, which brightens the recoloured pixels like those of the original.
public enum GainMapEdit {
    /// The outcome for the map.
    public enum Outcome: Sendable, Hashable {
        /// The source has no gain map.
        case none
        /// The render that includes the map.
        case kept([UInt8])
        /// The render has no map: the list has effects or borders, which cannot be applied to the map, or the map is
        /// damaged.
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
    ///   - source: the file to which they were applied
    ///   - image: the render with its metadata, a full-size JPEG
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
            let operations = list.ofPhotos.operations.filter { !$0.isNeutral }
            guard !operations.contains(where: { [.effect, .frame].contains($0.kind.stage) }),
                let map = GainMap.read(source, header, limits: limits)
            else { return .dropped }
            ImagingLibrary.enter(.working)
            let geometry = AdjustmentGeometry(operations, width: header.pixelWidth, height: header.pixelHeight)
            let edited = try AdjustmentRendering.transformed(map.wand, geometry, header)
            guard let bytes = GainMapJPEG.file(image: image, map: try map.encoded(edited), map.metadata) else {
                return .dropped
            }
            return .kept(bytes)
        } catch {
            return .dropped
        }
    }
}
