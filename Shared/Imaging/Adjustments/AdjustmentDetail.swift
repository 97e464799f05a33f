import CMagickWand
import CPixels
import Foundation
import PhotoModel

/// The operations that read neighbouring pixels.
///
/// Radii are in pixels of the full result. For a preview they are scaled down.
struct AdjustmentDetail {
    private let operations: [Adjustment]
    /// Pixels of this image per pixel of the full result.
    private let scale: Double

    init(_ operations: [Adjustment], scale: Double) {
        self.operations = operations.filter { !$0.isNeutral }
        self.scale = scale
    }

    /// Returns true if a stage has operations that are not neutral.
    func has(_ stage: AdjustmentKind.Stage) -> Bool { operations.contains { $0.kind.stage == stage } }

    /// Runs the operations of a stage: cleaning or detail.
    func apply(_ stage: AdjustmentKind.Stage, to wand: borrowing Wand) throws(ImagingError) {
        for operation in operations where operation.kind.stage == stage {
            switch operation.kind {
            case .noiseReduction: try smooth(wand, operation)
            case .clarity: try addClarity(wand, operation.number())
            case .sharpen: try sharpen(wand, operation)
            default: break
            }
        }
    }

    // MARK: - Noise

    /// The spatial weights in a window of 5 by 5: a Gaussian of 1.5 pixels.
    static let spatialWeights: [Float] = (0..<25).map { index in
        let (x, y) = (Double(index % 5 - 2), Double(index / 5 - 2))
        return Float(exp(-(x * x + y * y) / (2 * 1.5 * 1.5)))
    }

    /// The differences of encoded values at which the weight is a quarter.
    static let rangeWidths = (brightness: 0.06, colour: 0.12)

    private func smooth(_ wand: borrowing Wand, _ operation: Adjustment) throws(ImagingError) {
        // Scaling to half the size or less already removes the noise by averaging.
        guard scale > 0.5 else { return }
        let strengths = [Float(operation.number("luminance")), Float(operation.number("colour"))]
        let rangeFactors = [
            Float(1 / (Self.rangeWidths.brightness * Self.rangeWidths.brightness)),
            Float(1 / (Self.rangeWidths.colour * Self.rangeWidths.colour)),
        ]
        let (width, height) = (wand.width, wand.height)
        try wand.withPixels { pixels, count in
            var source = [UInt16](unsafeUninitializedCapacity: 4 * count) { buffer, used in
                buffer.baseAddress?.update(from: pixels, count: 4 * count)
                used = 4 * count
            }
            let output = UInt(bitPattern: pixels)
            source.withUnsafeMutableBufferPointer { buffer in
                let from = UInt(bitPattern: buffer.baseAddress)
                RowBands.run(height, pixels: count) { first, rows in
                    safelight_smooth(
                        UnsafePointer(bitPattern: from),
                        UnsafeMutablePointer(bitPattern: output),
                        width,
                        height,
                        first,
                        rows,
                        Self.spatialWeights,
                        rangeFactors,
                        strengths
                    )
                }
            }
        }
    }

    // MARK: - Local contrast

    private func addClarity(_ wand: borrowing Wand, _ value: Double) throws(ImagingError) {
        let radius = max(1, Int((Double(max(wand.width, wand.height)) / 100).rounded()))
        try withBrightness(wand) { pixels, plane, middle, width, height in
            var sums = [Double](repeating: 0, count: width)
            safelight_box_blur(&plane, &middle, &sums, width, height, radius, 3)
            safelight_add_detail(pixels, width * height, plane, Float(value), 0, 1)
        }
    }

    private func sharpen(_ wand: borrowing Wand, _ operation: Adjustment) throws(ImagingError) {
        let radius = operation.number("radius") * scale
        // A smaller radius has no visible effect.
        guard radius >= 0.2 else { return }
        let kernel = Self.gaussian(radius)
        try withBrightness(wand) { pixels, plane, middle, width, height in
            safelight_blur(&plane, &middle, width, height, kernel, kernel.count / 2)
            safelight_add_detail(
                pixels,
                width * height,
                plane,
                Float(operation.number("amount")),
                Float(operation.number("threshold")),
                0
            )
        }
    }

    /// Returns a Gaussian kernel that is cut off at three times its radius, with sum 1.
    static func gaussian(_ radius: Double) -> [Float] {
        let reach = max(1, Int((3 * radius).rounded(.up)))
        let weights = (-reach...reach).map { exp(-Double($0 * $0) / (2 * radius * radius)) }
        let sum = weights.reduce(0, +)
        return weights.map { Float($0 / sum) }
    }

    private func withBrightness(
        _ wand: borrowing Wand,
        _ body: (UnsafeMutablePointer<UInt16>, inout [Float], inout [Float], Int, Int) -> Void
    ) throws(ImagingError) {
        let (width, height) = (wand.width, wand.height)
        try wand.withPixels { pixels, count in
            var plane = [Float](repeating: 0, count: count)
            var middle = plane
            safelight_compute_brightness(pixels, count, &plane)
            body(pixels, &plane, &middle, width, height)
        }
    }
}
