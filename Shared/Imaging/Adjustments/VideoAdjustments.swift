import Foundation
public import PhotoModel

/// The operations of a list on videos, prepared for frames of one size.
///
/// Geometry is composed into one map, colour into one function, and watermarks into one image, so that another module
/// can apply them to each frame.
public struct VideoAdjustments: Sendable {
    /// The part of the upright frame that the result shows, and its orientation.
    public enum Geometry: Sendable, Equatable {
        /// A rectangle of whole pixels, to which an EXIF orientation 1...8 is applied, and which is scaled to the size.
        case part(x: Int, y: Int, width: Int, height: Int, orientation: Int)
        /// The points of the frame that become the top left, top right, bottom left and bottom right corner, in pixels.
        case corners([(x: Double, y: Double)])

        public static func == (left: Self, right: Self) -> Bool {
            switch (left, right) {
            case (
                .part(let x, let y, let width, let height, let orientation),
                .part(let otherX, let otherY, let otherWidth, let otherHeight, let otherOrientation)
            ):
                (x, y, width, height, orientation) == (otherX, otherY, otherWidth, otherHeight, otherOrientation)
            case (.corners(let points), .corners(let others)):
                points.map(\.x) == others.map(\.x) && points.map(\.y) == others.map(\.y)
            default: false
            }
        }
    }

    /// The watermarks as one image: rows of red, green, blue and alpha, a byte each.
    public struct Overlay: Sendable, Equatable {
        /// The position of its top left corner in the result, in pixels.
        public let x: Int
        public let y: Int
        public let width: Int
        public let height: Int
        public let pixels: [UInt8]
    }

    /// The size of the result in pixels. Both numbers are even, as encoders require.
    public let width: Int
    public let height: Int
    public let geometry: Geometry
    public let overlay: Overlay?
    private let colour: AdjustmentColour

    /// - Parameters:
    ///   - width: the width of the upright frames in pixels
    ///   - height: the height of the upright frames in pixels
    /// - Throws: `ImagingError` for operations that videos do not support, and for images that cannot be read
    public init(_ list: AdjustmentList, width: Int, height: Int) throws(ImagingError) {
        if let kind = Self.unsupported(list) {
            throw .invalidOptions(
                "\"\(kind.rawValue)\" is an operation for photos; videos support \(Self.supportedText)"
            )
        }
        let operations = list.operations.filter { !$0.isNeutral }
        let map = AdjustmentGeometry(operations, width: width, height: height)
        self.width = max(2, map.width & ~1)
        self.height = max(2, map.height & ~1)
        if map.isResampled {
            let (across, down) = (Double(self.width), Double(self.height))
            geometry = .corners([
                map.source(0, 0), map.source(across, 0), map.source(0, down), map.source(across, down),
            ])
        } else {
            var part = map.visiblePart
            let oriented = map.orientation >= 5 ? (part.height, part.width) : (part.width, part.height)
            if oriented == (map.width, map.height) {
                // Encoders require even sides. The last row or column is cut off, instead of scaling the frame.
                if part.width > 2 { part.width &= ~1 }
                if part.height > 2 { part.height &= ~1 }
            }
            geometry = .part(
                x: part.x,
                y: part.y,
                width: part.width,
                height: part.height,
                orientation: map.orientation
            )
        }
        colour = try AdjustmentColour(operations.filter { $0.kind.stage == .colour }, isEightBit: false)
        overlay = try Self.overlay(
            operations.filter { $0.kind.stage == .overlay },
            width: self.width,
            height: self.height
        )
    }

    /// Returns the first operation that videos do not support; nil if there is none.
    public static func unsupported(_ list: AdjustmentList) -> AdjustmentKind? {
        list.operations.first { !$0.isNeutral && !stages.contains($0.kind.stage) }?.kind
    }

    private static let stages: Set<AdjustmentKind.Stage> = [.geometry, .colour, .overlay, .video]
    /// The operations that videos support, for messages.
    public static let supportedText = "geometry, colour, time, sound and watermarks"

    // MARK: Colour

    /// True if colours change.
    public var recolours: Bool { !colour.isEmpty }

    /// Changes colours in place. Each is red, green and blue, 16 bits each, in sRGB.
    public func recolour(_ colours: inout [UInt16]) throws(ImagingError) {
        guard recolours else { return }
        let count = colours.count / 3
        // A single row would be too long for an image.
        let width = max(1, Int(Double(count).squareRoot()))
        let wand = try Wand.blank(width, (count + width - 1) / width)
        try wand.withPixels { pixels, _ in
            for index in 0..<count {
                for channel in 0..<3 { pixels[4 * index + channel] = colours[3 * index + 2 - channel] }
                pixels[4 * index + 3] = 0
            }
        }
        wand.setDepth(16)
        try colour.apply(to: wand)
        var changed = colours
        try wand.withPixelsForReading { pixels, _ in
            for index in 0..<count {
                for channel in 0..<3 { changed[3 * index + 2 - channel] = pixels[4 * index + channel] }
            }
        }
        colours = changed
    }

    // MARK: Watermarks

    private static func overlay(
        _ operations: [Adjustment],
        width: Int,
        height: Int
    ) throws(ImagingError) -> Overlay? {
        guard !operations.isEmpty else { return nil }
        let wand = try Wand.blank(width, height)
        try wand.withPixels { pixels, count in
            for index in 0..<count { pixels[4 * index + 3] = 65_535 }
        }
        for operation in operations { try AdjustmentOverlay.apply(operation, to: wand) }
        var overlay: Overlay?
        try wand.withPixelsForReading { pixels, _ in
            var (left, right, top, bottom) = (width, -1, height, -1)
            for y in 0..<height {
                for x in 0..<width where pixels[4 * (y * width + x) + 3] < 65_535 {
                    (left, right) = (min(left, x), max(right, x))
                    (top, bottom) = (min(top, y), max(bottom, y))
                }
            }
            guard right >= left else { return }
            var bytes: [UInt8] = []
            bytes.reserveCapacity(4 * (right - left + 1) * (bottom - top + 1))
            for y in top...bottom {
                for x in left...right {
                    let pixel = pixels + 4 * (y * width + x)
                    for channel in [2, 1, 0] { bytes.append(UInt8(pixel[channel] / 257)) }
                    bytes.append(UInt8((65_535 - pixel[3]) / 257))
                }
            }
            overlay = Overlay(x: left, y: top, width: right - left + 1, height: bottom - top + 1, pixels: bytes)
        }
        return overlay
    }
}

extension AdjustmentList {
    /// The list without the operations that only videos have.
    public var ofPhotos: AdjustmentList {
        var list = self
        list.operations.removeAll { $0.kind.stage == .video }
        return list
    }
}
