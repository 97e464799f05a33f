import Foundation
import PhotoModel

/// The calls for the operations that read neighbouring pixels; see ``AdjustmentDetail``.
struct MagickDetail {
    let width: Int
    let height: Int
    /// Pixels of this image per pixel of the full result.
    let scale: Double

    func calls(_ operation: Adjustment) -> [MagickCall] {
        switch operation.kind {
        case .noiseReduction: smoothing(operation)
        case .clarity: clarity(operation.number())
        case .sharpen: sharpening(operation)
        default: []
        }
    }

    /// Half the difference of two images, destination minus source, around middle grey.
    private static let difference = MagickCall.composite(.mathematics(0, -0.5, 0.5, 0.5))

    /// Returns a call that adds twice a ``difference``, times a factor.
    private static func add(_ factor: Double) -> MagickCall {
        .composite(.mathematics(0, 2 * factor, 1, -factor))
    }

    private func sharpening(_ operation: Adjustment) -> [MagickCall] {
        let radius = operation.number("radius") * scale
        guard radius >= 0.2 else { return [] }
        let kernel = AdjustmentDetail.gaussian(radius).map { Double($0) }
        var mask: [MagickCall] = [
            .copy([0]), .grey(.luma),
            .group([.copy([0]), .convolve(kernel, isColumn: false), .convolve(kernel, isColumn: true)]),
            Self.difference,
        ]
        let threshold = operation.number("threshold")
        if threshold > 0 {
            mask += [.image(.functions([{ abs(2 * $0 - 1) >= threshold ? $0 : 0.5 }])), .clut]
        }
        return [.group(mask), Self.add(operation.number("amount"))]
    }

    private func clarity(_ value: Double) -> [MagickCall] {
        let radius = max(1, Int((Double(max(width, height)) / 100).rounded()))
        return [
            .group([
                .copy([0]), .grey(.luma), .group([.copy([0])] + boxes(radius)),
                .group([.copy([0, 1]), Self.difference]),
                .group([.copy([0]), .image(.functions([{ 4 * $0 * (1 - $0) }])), .clut]), .delete([0, 1]),
                .composite(.mathematics(1, -0.5, 0, 0.5)),
            ]), Self.add(value),
        ]
    }

    /// Returns the calls for three box filters in succession. Large ones are applied to a smaller image, because the
    /// result is smooth.
    private func boxes(_ radius: Int) -> [MagickCall] {
        let reduction = radius / 4
        guard reduction > 1 else {
            let box = [Double](repeating: 1 / Double(2 * radius + 1), count: 2 * radius + 1)
            let kernel = Self.convolved(box, Self.convolved(box, box))
            return [.convolve(kernel, isColumn: false), .convolve(kernel, isColumn: true)]
        }
        let step = Double(reduction)
        // The variances of the boxes, minus those of the two filters that scale.
        let variance = (Double(radius * (radius + 1)) - step * step / 4) / (step * step)
        let kernel = AdjustmentDetail.gaussian(variance.squareRoot()).map { Double($0) }
        return [
            .resize(width: max(1, width / reduction), height: max(1, height / reduction), .box),
            .convolve(kernel, isColumn: false), .convolve(kernel, isColumn: true),
            .resize(width: width, height: height, .triangle),
        ]
    }

    private static func convolved(_ left: [Double], _ right: [Double]) -> [Double] {
        var result = [Double](repeating: 0, count: left.count + right.count - 1)
        for (index, weight) in left.enumerated() {
            for (offset, other) in right.enumerated() { result[index + offset] += weight * other }
        }
        return result
    }

    /// The thresholds of the two selective blurs whose average is closest to the smooth weights of the fused pass.
    static let thresholds = (luma: [0.03, 0.07], colour: [0.06, 0.14])

    private func smoothing(_ operation: Adjustment) -> [MagickCall] {
        guard scale > 0.5 else { return [] }
        let strengths = (luma: operation.number("luminance"), colour: operation.number("colour"))
        var calls: [MagickCall] = [.luma, .separate]
        // The colour differences of Rec. 709 are blue and red minus luma, divided by these numbers.
        for (channel, strength, divisor) in [
            (0, strengths.luma, 1), (1, strengths.colour, 1.8556), (2, strengths.colour, 1.5748),
        ] {
            guard strength > 0 else {
                calls.append(.group([.copy([channel])]))
                continue
            }
            let thresholds = channel == 0 ? Self.thresholds.luma : Self.thresholds.colour
            calls.append(
                .group(
                    [.copy([channel])]
                        + thresholds.map { .group([.copy([0]), .selectiveBlur(threshold: $0 / divisor)]) } + [
                            .group([.copy([1, 2]), .composite(.mathematics(0, 0.5, 0.5, 0))]), .delete([1, 2]),
                            .composite(.mathematics(0, strength, 1 - strength, 0)),
                        ]
                )
            )
        }
        return calls + [.delete([0, 1, 2]), .combineLuma]
    }
}
