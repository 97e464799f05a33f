import Foundation
import PhotoModel

/// All operations of a list that move pixels, composed into one affine map.
///
/// Sizes stay whole: a crop rounds its edges to pixels, a straightened picture its sides. Each operation applies to the
/// picture as the one before left it.
struct AdjustmentGeometry {
    /// The size of the result.
    private(set) var width: Int
    private(set) var height: Int
    /// The point (x, y) of the result lies at (m0 x + m1 y + m2, m3 x + m4 y + m5) of the source, in pixels from the
    /// upper left corner.
    private(set) var map: [Double] = [1, 0, 0, 0, 1, 0]
    private(set) var isStraightened = false

    init(_ operations: [Adjustment], width: Int, height: Int) {
        self.width = width
        self.height = height
        for operation in operations where !operation.isNeutral {
            switch operation {
            case .crop(let rect): crop(rect)
            case .straighten(let degrees): straighten(degrees)
            case .rotate(let turn): rotate(turn)
            case .flip(.horizontal): compose([-1, 0, Double(self.width), 0, 1, 0])
            case .flip(.vertical): compose([1, 0, 0, 0, -1, Double(self.height)])
            case .exposure, .contrast, .saturation, .temperature, .blackAndWhite: break
            }
        }
    }

    /// Puts a map from the new result to the old one in front.
    private mutating func compose(_ inner: [Double]) {
        map = Self.product(map, inner)
    }

    private static func product(_ outer: [Double], _ inner: [Double]) -> [Double] {
        [
            outer[0] * inner[0] + outer[1] * inner[3], outer[0] * inner[1] + outer[1] * inner[4],
            outer[0] * inner[2] + outer[1] * inner[5] + outer[2],
            outer[3] * inner[0] + outer[4] * inner[3], outer[3] * inner[1] + outer[4] * inner[4],
            outer[3] * inner[2] + outer[4] * inner[5] + outer[5],
        ]
    }

    private mutating func crop(_ rect: UnitRect) {
        let cut = RenditionPlan.pixels(of: rect, width: width, height: height)
        compose([1, 0, Double(cut.x), 0, 1, Double(cut.y)])
        width = cut.width
        height = cut.height
    }

    private mutating func rotate(_ turn: Adjustment.QuarterTurn) {
        let (across, down) = (Double(width), Double(height))
        switch turn {
        case .quarter: compose([0, 1, 0, -1, 0, down])
        case .half: compose([-1, 0, across, 0, -1, down])
        case .threeQuarters: compose([0, -1, across, 1, 0, 0])
        }
        if turn != .half { (width, height) = (height, width) }
    }

    private mutating func straighten(_ degrees: Double) {
        isStraightened = true
        let angle = degrees * .pi / 180
        let (across, down) = (Double(width), Double(height))
        let (cosine, sine) = (cos(angle), sin(angle))
        let factor = min(
            across / (across * cosine + down * abs(sine)),
            down / (across * abs(sine) + down * cosine)
        )
        let newAcross = max(1, (across * factor).rounded(.down))
        let newDown = max(1, (down * factor).rounded(.down))
        // The picture turns clockwise, so a point of the result lies where turning back puts it.
        let (x, y) = (newAcross / 2, newDown / 2)
        compose([
            cosine, sine, across / 2 - cosine * x - sine * y,
            -sine, cosine, down / 2 + sine * x - cosine * y,
        ])
        width = Int(newAcross)
        height = Int(newDown)
    }

    /// The same map where the result and the source have other sizes.
    func scaled(source: (x: Double, y: Double), result: (x: Double, y: Double)) -> [Double] {
        let stretched = Self.product(map, [1 / result.x, 0, 0, 0, 1 / result.y, 0])
        return stretched.enumerated().map { $1 * ($0 < 3 ? source.x : source.y) }
    }

    /// The EXIF number of the turn and mirror that the map makes, where it makes nothing else.
    var orientation: Int {
        func sign(_ index: Int) -> Int { Int(map[index].rounded()) }
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

    /// The part of the source that is shown.
    var shown: PixelRect {
        let ends = [(0, 0), (Double(width), Double(height))].map { x, y in
            (map[0] * x + map[1] * y + map[2], map[3] * x + map[4] * y + map[5])
        }
        let x = Int(min(ends[0].0, ends[1].0).rounded())
        let y = Int(min(ends[0].1, ends[1].1).rounded())
        return PixelRect(
            x: x,
            y: y,
            width: Int(abs(ends[0].0 - ends[1].0).rounded()),
            height: Int(abs(ends[0].1 - ends[1].1).rounded())
        )
    }
}
