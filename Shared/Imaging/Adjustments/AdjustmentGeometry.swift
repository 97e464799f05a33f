import Foundation
import PhotoModel

/// All operations of a list that move pixels, composed into one projective map.
///
/// Sizes are whole numbers: crops are rounded to pixels, and so are the sides of a straightened image. Each operation
/// applies to the result of the previous one.
struct AdjustmentGeometry {
    /// The size of the result in pixels.
    private(set) var width: Int
    private(set) var height: Int
    /// Maps a point (x, y) of the result to the point (m0 x + m1 y + m2, m3 x + m4 y + m5) of the source, both divided
    /// by m6 x + m7 y + m8, in pixels from the upper left corner.
    private(set) var map: [Double] = [1, 0, 0, 0, 1, 0, 0, 0, 1]
    /// True if pixels of the result lie between pixels of the source for a reason other than scaling.
    private(set) var isResampled = false

    init(_ operations: [Adjustment], width: Int, height: Int) {
        self.width = width
        self.height = height
        for operation in operations where operation.kind.stage == .geometry && !operation.isNeutral {
            switch operation.kind {
            case .crop: crop(operation.rect)
            case .straighten: straighten(operation.number())
            case .rotate: rotate(Int(operation.number()))
            case .flip where operation.text() == Adjustment.Axis.horizontal.rawValue:
                compose([-1, 0, Double(self.width), 0, 1, 0, 0, 0, 1])
            case .flip: compose([1, 0, 0, 0, -1, Double(self.height), 0, 0, 1])
            case .perspective: applyPerspective(PerspectiveCorners(operation))
            case .resize: fit(Int(operation.number("width")), Int(operation.number("height")))
            default: break
            }
        }
    }

    /// Prepends a map from the new result to the old one.
    private mutating func compose(_ inner: [Double]) {
        map = ColourMatrix.product(map, inner)
        if map[8] != 0, map[8] != 1 { map = map.map { $0 / map[8] } }
    }

    private mutating func crop(_ rect: UnitRect) {
        let cut = RenditionGeometry.pixels(of: rect, width: width, height: height)
        compose([1, 0, Double(cut.x), 0, 1, Double(cut.y), 0, 0, 1])
        width = cut.width
        height = cut.height
    }

    private mutating func rotate(_ degrees: Int) {
        let (across, down) = (Double(width), Double(height))
        switch degrees {
        case 90: compose([0, 1, 0, -1, 0, down, 0, 0, 1])
        case 180: compose([-1, 0, across, 0, -1, down, 0, 0, 1])
        default: compose([0, -1, across, 1, 0, 0, 0, 0, 1])
        }
        if degrees != 180 { (width, height) = (height, width) }
    }

    private mutating func straighten(_ degrees: Double) {
        isResampled = true
        let angle = degrees * .pi / 180
        let (across, down) = (Double(width), Double(height))
        let (cosine, sine) = (cos(angle), sin(angle))
        let factor = min(
            across / (across * cosine + down * abs(sine)),
            down / (across * abs(sine) + down * cosine)
        )
        let newAcross = max(1, (across * factor).rounded(.down))
        let newDown = max(1, (down * factor).rounded(.down))
        // The image rotates clockwise, so a point of the result is found by rotating back.
        let (x, y) = (newAcross / 2, newDown / 2)
        compose([
            cosine, sine, across / 2 - cosine * x - sine * y,
            -sine, cosine, down / 2 + sine * x - cosine * y,
            0, 0, 1,
        ])
        width = Int(newAcross)
        height = Int(newDown)
    }

    private mutating func applyPerspective(_ corners: PerspectiveCorners) {
        isResampled = true
        let points = corners.points.map { (x: $0.x * Double(width), y: $0.y * Double(height)) }
        func length(_ from: Int, _ to: Int) -> Double {
            hypot(points[to].x - points[from].x, points[to].y - points[from].y)
        }
        let across = max(1, ((length(0, 1) + length(3, 2)) / 2).rounded())
        let down = max(1, ((length(0, 3) + length(1, 2)) / 2).rounded())
        // Maps the unit square to the four corners (Heckbert), scaled to pixels of the result.
        let (a, b, c, d) = (points[0], points[1], points[2], points[3])
        let (sumX, sumY) = (a.x - b.x + c.x - d.x, a.y - b.y + c.y - d.y)
        let (dx1, dx2, dy1, dy2) = (b.x - c.x, d.x - c.x, b.y - c.y, d.y - c.y)
        let determinant = dx1 * dy2 - dx2 * dy1
        let g = (sumX * dy2 - dx2 * sumY) / determinant
        let h = (dx1 * sumY - sumX * dy1) / determinant
        compose([
            (b.x - a.x + g * b.x) / across, (d.x - a.x + h * d.x) / down, a.x,
            (b.y - a.y + g * b.y) / across, (d.y - a.y + h * d.y) / down, a.y,
            g / across, h / down, 1,
        ])
        width = Int(across)
        height = Int(down)
    }

    /// - Parameters:
    ///   - maxWidth: 0 for no limit
    ///   - maxHeight: 0 for no limit
    private mutating func fit(_ maxWidth: Int, _ maxHeight: Int) {
        let limits = (maxWidth == 0 ? 65_500 : maxWidth, maxHeight == 0 ? 65_500 : maxHeight)
        let size = RenditionGeometry.fitted((width, height), limits.0, limits.1)
        guard size.width < width || size.height < height else { return }
        compose([
            Double(width) / Double(size.width), 0, 0, 0, Double(height) / Double(size.height), 0, 0, 0, 1,
        ])
        width = size.width
        height = size.height
    }

    // MARK: - Queries

    /// Returns the point of the source for a point of the result.
    func source(_ x: Double, _ y: Double) -> (x: Double, y: Double) {
        let divisor = map[6] * x + map[7] * y + map[8]
        return ((map[0] * x + map[1] * y + map[2]) / divisor, (map[3] * x + map[4] * y + map[5]) / divisor)
    }

    /// The maximum ratio of result pixels to source pixels in the image, at most 1.
    var scale: Double {
        let (across, down) = (Double(width), Double(height))
        let step = 0.5
        let points = [(0.5, 0.5), (0, 0), (1, 0), (0, 1), (1, 1)]
        let scales = points.map { u, v -> Double in
            let (x, y) = (u * max(0, across - step), v * max(0, down - step))
            let (origin, right, below) = (source(x, y), source(x + step, y), source(x, y + step))
            let distance = min(
                hypot(right.x - origin.x, right.y - origin.y),
                hypot(below.x - origin.x, below.y - origin.y)
            )
            return distance > 0 ? step / distance : 1
        }
        return min(1, scales.max() ?? 1)
    }

    /// Returns the same map for a result and a source of other sizes.
    func scaled(source: (x: Double, y: Double), result: (x: Double, y: Double)) -> [Double] {
        let scaled = ColourMatrix.product(map, [1 / result.x, 0, 0, 0, 1 / result.y, 0, 0, 0, 1])
        return scaled.enumerated().map { $0 < 3 ? $1 * source.x : $0 < 6 ? $1 * source.y : $1 }
    }

    /// The EXIF orientation that equals the rotation and mirroring of the map, if it only rotates, mirrors and scales.
    var orientation: Int {
        func sign(_ index: Int) -> Int { map[index] > 0 ? 1 : map[index] < 0 ? -1 : 0 }
        return switch (sign(0), sign(1), sign(3), sign(4)) {
        case (-1, 0, 0, 1): 2
        case (-1, 0, 0, -1): 3
        case (1, 0, 0, -1): 4
        case (0, 1, 1, 0): 5
        case (0, 1, -1, 0): 6
        case (0, -1, -1, 0): 7
        case (0, -1, 1, 0): 8
        default: 1
        }
    }

    /// The visible part of the source, if the map only rotates, mirrors and scales.
    var visiblePart: PixelRect {
        let ends = [source(0, 0), source(Double(width), Double(height))]
        let x = Int(min(ends[0].x, ends[1].x).rounded())
        let y = Int(min(ends[0].y, ends[1].y).rounded())
        return PixelRect(
            x: x,
            y: y,
            width: max(1, Int(max(ends[0].x, ends[1].x).rounded()) - x),
            height: max(1, Int(max(ends[0].y, ends[1].y).rounded()) - y)
        )
    }

    /// Returns the visible part of an image of this size, which shows the whole source.
    func visiblePart(in size: (width: Int, height: Int), of full: (width: Int, height: Int)) -> PixelRect {
        let part = visiblePart
        let unit = UnitRect(
            x: Double(part.x) / Double(full.width),
            y: Double(part.y) / Double(full.height),
            width: Double(part.width) / Double(full.width),
            height: Double(part.height) / Double(full.height)
        )
        return RenditionGeometry.pixels(of: unit, width: size.width, height: size.height)
    }
}
