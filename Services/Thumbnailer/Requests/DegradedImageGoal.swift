import Contracts
import PhotoModel

/// The size of a requested image, with which images that could be shown meanwhile are compared.
struct DegradedImageGoal: Sendable, Hashable {
    /// The size in pixels that the image has without enlargement.
    let width: Int
    let height: Int
    /// True for a JPEG of which all pixels have to be decoded, so that a decode at a fraction takes much less time.
    let needsAllPixels: Bool

    /// Creates the goal of a plan; nil if the size of its source is unknown.
    init?(_ plan: RenditionPlan, of source: AssetResource) {
        guard source.pixelWidth > 0, source.pixelHeight > 0 else { return nil }
        let part = plan.crop ?? .full
        let (across, down) = (Double(source.pixelWidth) * part.width, Double(source.pixelHeight) * part.height)
        var size = (across, down)
        var scale = 1.0
        if case .size(let width, let height) = plan.targetSize, plan.resizeMode != .none {
            let factors = (Double(width) / across, Double(height) / down)
            let isFilled = plan.contentMode == .aspectFill
            let factor = isFilled ? max(factors.0, factors.1) : min(factors.0, factors.1)
            scale = min(1, factor)
            size = (across * scale, down * scale)
            if isFilled, plan.resizeMode == .exact {
                size = (Double(width) / max(1, factor), Double(height) / max(1, factor))
            }
        }
        width = max(1, Int(size.0.rounded()))
        height = max(1, Int(size.1.rounded()))
        needsAllPixels = source.contentType == "public.jpeg" && scale > 0.25
    }

    /// Returns true if an image has at least a quarter of the size in both directions, so that it can be shown in place
    /// of the requested one.
    func isNear(_ rendition: StoredRendition) -> Bool {
        4 * rendition.pixelWidth >= width && 4 * rendition.pixelHeight >= height
    }
}
