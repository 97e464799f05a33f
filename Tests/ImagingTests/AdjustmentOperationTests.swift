import Foundation
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging
import ImageFormats

/// Compares each colour operation with its documented formula, implemented independently in plain Swift.
@Suite(.timeLimit(.minutes(5)))
struct AdjustmentOperationTests {
    typealias Colour = [Double]

    /// Every hue at several strengths and brightnesses, greys, and the corners of the cube.
    static let chart = chart(bits: 8)
    static let deepChart = chart(bits: 16)

    private static func chart(bits: UInt8) -> [UInt8] {
        TestImages.png(width: 120, height: 72, bits: bits, pixel: colour)
    }

    private static func colour(_ x: Int, _ y: Int) -> (UInt8, UInt8, UInt8, UInt8) {
        let hue = Double(x) / 20
        let (strength, bright) = (Double(y % 9) / 8, Double(y / 9 + 1) / 8)
        let pure = [0.0, 4, 2].map { min(1, max(0, abs((hue + $0).truncatingRemainder(dividingBy: 6) - 3) - 1)) }
        let mixed = pure.map { UInt8((255 * bright * (1 - strength + strength * $0)).rounded()) }
        return (mixed[0], mixed[1], mixed[2], 255)
    }

    static func clip(_ value: Double) -> Double { min(1, max(0, value)) }
    static func grey(_ c: Colour) -> Double { 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2] }
    static func light(_ v: Double) -> Double { v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4) }
    static func code(_ l: Double) -> Double { l <= 0.0031308 ? 12.92 * l : 1.055 * pow(l, 1 / 2.4) - 0.055 }

    /// Applies a function to each channel.
    static func each(_ body: @escaping (Double) -> Double) -> (Colour) -> Colour { { $0.map(body) } }
    /// Applies a function to linear light.
    static func onLight(_ body: @escaping (Colour) -> Colour) -> (Colour) -> Colour {
        { body($0.map(light)).map { code(clip($0)) } }
    }

    /// Returns the pure colour of a hue in degrees, by sixths of the circle.
    static func pure(_ degrees: Double) -> Colour {
        let hue = (degrees.truncatingRemainder(dividingBy: 360) + 360).truncatingRemainder(dividingBy: 360)
        let part = hue / 60
        let rest = part - part.rounded(.down)
        return switch Int(part) {
        case 0: [1, rest, 0]
        case 1: [1 - rest, 1, 0]
        case 2: [0, 1, rest]
        case 3: [0, 1 - rest, 1]
        case 4: [rest, 0, 1]
        default: [1, 0, 1 - rest]
        }
    }

    /// Returns the hue in degrees by its sixth of the hexagon.
    static func hue(_ c: Colour) -> Double {
        let (high, low) = (c.max() ?? 0, c.min() ?? 0)
        guard high > low else { return 0 }
        let order = [0, 1, 2].sorted { c[$0] > c[$1] }
        let middle = (c[order[1]] - low) / (high - low)
        return switch (order[0], order[2]) {
        case (0, 2): 60 * middle
        case (1, 2): 60 * (2 - middle)
        case (1, 0): 60 * (2 + middle)
        case (2, 0): 60 * (4 - middle)
        case (2, 1): 60 * (4 + middle)
        default: (60 * (6 - middle)).truncatingRemainder(dividingBy: 360)
        }
    }

    /// Returns the value of the bands at a hue, interpolated between the two nearest centres.
    static func band(_ values: [Double], _ hue: Double) -> Double {
        let centres = [0.0, 30, 60, 120, 180, 240, 270, 300, 360]
        let index = (centres.firstIndex { $0 > hue } ?? 8) - 1
        let part = (hue - centres[index]) / (centres[index + 1] - centres[index])
        return values[index] * (1 - part) + values[(index + 1) % 8] * part
    }

    static func toned(_ c: Colour, _ degrees: Double) -> Colour {
        let colour = pure(degrees)
        let y = grey(c)
        return colour.map { 2 * y * (1 - y) * ($0 - grey(colour)) }
    }

    struct Case: CustomTestStringConvertible, Sendable {
        let kind: AdjustmentKind
        let members: JSONObject
        let formula: @Sendable (Colour) -> Colour
        var testDescription: String { "\(kind) \(JSON.object(members).text)" }

        init(_ kind: AdjustmentKind, _ members: JSONObject, _ formula: @escaping @Sendable (Colour) -> Colour) {
            self.kind = kind
            self.members = members
            self.formula = formula
        }
    }

    static let tones: [Case] = [-0.8, 0.6].flatMap { value -> [Case] in
        let members: JSONObject = ["value": .double(value)]
        let g = pow(2, value)
        return [
            Case(.exposure, members) { onLight { $0.map { $0 * g } }($0) },
            Case(.brightness, members) { each { pow($0, 1 / g) }($0) },
            Case(.contrast, members) { each { $0 < 0.5 ? pow(2 * $0, g) / 2 : 1 - pow(2 - 2 * $0, g) / 2 }($0) },
            Case(.highlights, members) { each { $0 + value * $0 * $0 * (1 - $0) }($0) },
            Case(.shadows, members) { each { $0 + value * $0 * (1 - $0) * (1 - $0) }($0) },
            Case(.whites, members) { each { clip($0 + value * pow($0, 3) / 4) }($0) },
            Case(.blacks, members) { each { clip($0 + value * pow(1 - $0, 3) / 4) }($0) },
            Case(.temperature, members) { c in
                let gains = [pow(2, value / 2), 1, pow(2, -value / 2)]
                return onLight { l in (0..<3).map { l[$0] * gains[$0] / grey(gains) } }(c)
            },
            Case(.tint, members) { c in
                let gains = [1, pow(2, -value / 2), 1]
                return onLight { l in (0..<3).map { l[$0] * gains[$0] / grey(gains) } }(c)
            },
            Case(.saturation, members) { onLight { l in l.map { grey(l) + (1 + value) * ($0 - grey(l)) } }($0) },
            Case(.vibrance, members) { c in
                let chroma = (c.max() ?? 0) - (c.min() ?? 0)
                return c.map { clip(grey(c) + ($0 - grey(c)) * (1 + value * (1 - chroma))) }
            },
        ]
    }

    static let mixes: [Case] = [
        Case(.levels, ["black": 0.1, "white": 0.85, "gamma": 1.4, "outputBlack": 0.05, "outputWhite": 0.95]) {
            each { 0.05 + 0.9 * pow(clip(($0 - 0.1) / 0.75), 1 / 1.4) }($0)
        },
        Case(.blackAndWhite, ["value": 0.7]) { onLight { l in l.map { 0.7 * grey(l) + 0.3 * $0 } }($0) },
        Case(.sepia, ["value": 0.8]) { c in
            let brown = [
                0.393 * c[0] + 0.769 * c[1] + 0.189 * c[2], 0.349 * c[0] + 0.686 * c[1] + 0.168 * c[2],
                0.272 * c[0] + 0.534 * c[1] + 0.131 * c[2],
            ]
            return (0..<3).map { 0.8 * clip(brown[$0]) + 0.2 * c[$0] }
        },
        Case(.toning, ["value": 0.9, "hue": 210]) { c in
            (0..<3).map { 0.1 * c[$0] + 0.9 * (grey(c) + toned(c, 210)[$0]) }
        },
        Case(
            .splitToning,
            [
                "shadowHue": 230, "shadowSaturation": 0.5, "highlightHue": 40, "highlightSaturation": 0.7,
                "balance": 0.3,
            ]
        ) { c in
            let w = clip(grey(c) + 0.15)
            return (0..<3).map { clip(c[$0] + (1 - w) * 0.5 * toned(c, 230)[$0] + w * 0.7 * toned(c, 40)[$0]) }
        },
        Case(.hsl, ["redHue": 0.8, "greenSaturation": -0.6, "blueLuminance": 0.5, "yellowSaturation": 0.7]) { c in
            let (high, low) = (c.max() ?? 0, c.min() ?? 0)
            let h = hue(c)
            let turned = h + 30 * band([0.8, 0, 0, 0, 0, 0, 0, 0], h)
            let chroma = (high - low) * (1 + band([0, 0, 0.7, -0.6, 0, 0, 0, 0], h))
            let l = (high + low) / 2 + (high - low) * band([0, 0, 0, 0, 0, 0.5, 0, 0], h) / 2
            return pure(turned).map { clip(l + chroma * ($0 - 0.5)) }
        },
        Case(.modulate, ["brightness": 0.9, "saturation": 1.4, "hue": -50]) { c in
            let (high, low) = (c.max() ?? 0, c.min() ?? 0)
            let l = (high + low) / 2
            let maxChroma = 1 - abs(2 * l - 1)
            let s = 1.4 * (maxChroma > 0 ? (high - low) / maxChroma : 0)
            let strength = s * (1 - abs(2 * 0.9 * l - 1))
            return pure(hue(c) - 50).map { clip(0.9 * l + strength * ($0 - 0.5)) }
        },
        Case(.blackAndWhiteMix, ["value": 1, "red": 0.7, "blue": -0.9, "aqua": 0.2]) { c in
            let chroma = (c.max() ?? 0) - (c.min() ?? 0)
            let y = clip(grey(c) + chroma * band([0.7, 0, 0, 0, 0.2, -0.9, 0, 0], hue(c)) / 2)
            return [y, y, y]
        },
    ]

    @Test(arguments: tones + mixes)
    func `a colour operation equals its formula`(test: Case) throws {
        let step = try Adjustment(test.kind, test.members)
        let whole = try TestPixels(Self.chart)
        let image = try AdjustmentRendering.render(Self.chart, AdjustmentList(operations: [step]), format: .png)
        let pixels = try TestPixels(image.bytes)
        let expected = whole.mapped { test.formula($0) }
        #expect(pixels.psnr(expected) > 48, "\(pixels.psnr(expected)) dB")
        #expect(pixels.psnr(whole) < 45, "the operation changes the image")
        // An image of sixteen bits takes another path through the code.
        let fine = try AdjustmentRendering.render(Self.deepChart, AdjustmentList(operations: [step]), format: .png)
        #expect(try TestPixels(fine.bytes).psnr(expected) > 48)
        // After a resize, the formula's input is rounded to eight bits.
        let deep = try AdjustmentRendering.render(
            Self.chart,
            AdjustmentList(operations: [step, Adjustment(.resize, ["width": 60])]),
            format: .png
        )
        let small = try AdjustmentRendering.render(
            Self.chart,
            AdjustmentList(operations: [Adjustment(.resize, ["width": 60])]),
            format: .png
        )
        let expectedSmall = try TestPixels(small.bytes).mapped { test.formula($0) }
        #expect(try TestPixels(deep.bytes).psnr(expectedSmall) > 40)
    }

    @Test func `curves pass through their points, the master curve first`() throws {
        let master: JSON = [[0, 0.1], [0.3, 0.2], [0.7, 0.9], [1, 1]]
        let red: JSON = [[0, 0], [0.5, 0.8], [1, 0.9]]
        let step = try Adjustment(.curve, ["master": master, "red": red])
        let whole = try TestPixels(Self.chart)
        let pixels = try TestPixels(
            AdjustmentRendering.render(Self.chart, AdjustmentList(operations: [step]), format: .png).bytes
        )
        let first = Self.cubic([(0, 0.1), (0.3, 0.2), (0.7, 0.9), (1, 1)])
        let second = Self.cubic([(0, 0), (0.5, 0.8), (1, 0.9)])
        let expected = whole.mapped { c in [second(first(c[0])), first(c[1]), first(c[2])] }
        #expect(pixels.psnr(expected) > 48, "\(pixels.psnr(expected)) dB")
        // The curve is exact at the points.
        for (x, y) in [(0, 0.1), (0.3, 0.2), (0.7, 0.9), (1, 1)] { #expect(abs(first(x) - y) < 1e-12) }
    }

    /// Evaluates cubic Hermite segments in Bernstein form.
    private static func cubic(_ points: [(Double, Double)]) -> (Double) -> Double {
        let slopes = zip(points, points.dropFirst()).map { ($1.1 - $0.1) / ($1.0 - $0.0) }
        let tangents = points.indices.map { index -> Double in
            guard index > 0, index < points.count - 1 else { return index == 0 ? slopes[0] : slopes[index - 1] }
            let (a, b) = (slopes[index - 1], slopes[index])
            let (h, k) = (points[index].0 - points[index - 1].0, points[index + 1].0 - points[index].0)
            return a * b <= 0 ? 0 : 3 * (h + k) / ((2 * k + h) / a + (k + 2 * h) / b)
        }
        return { x in
            let index = min(points.count - 2, max(0, (points.firstIndex { $0.0 > x } ?? points.count) - 1))
            let width = points[index + 1].0 - points[index].0
            let t = clip((x - points[index].0) / width)
            let ends = [
                points[index].1, points[index].1 + width * tangents[index] / 3,
                points[index + 1].1 - width * tangents[index + 1] / 3, points[index + 1].1,
            ]
            let weights = [pow(1 - t, 3), 3 * t * pow(1 - t, 2), 3 * t * t * (1 - t), pow(t, 3)]
            return clip(zip(ends, weights).reduce(0) { $0 + $1.0 * $1.1 })
        }
    }

    @Test func `neutral values change no pixels`() throws {
        let whole = try TestPixels(Self.chart)
        for kind in AdjustmentKind.all {
            var members = JSONObject()
            for parameter in kind.parameters where !parameter.isModifier {
                members[parameter.name] = parameter.neutral?.json
            }
            let step = try Adjustment(kind, members)
            guard step.isNeutral else { continue }
            let image = try AdjustmentRendering.render(Self.chart, AdjustmentList(operations: [step]), format: .png)
            #expect(try TestPixels(image.bytes).rgb == whole.rgb, "\(kind)")
            // Nearly neutral values change little: operations are continuous at the neutral value.
            guard let first = kind.parameters.first(where: { !$0.isModifier }), case .number(let range)? = first.number,
                case .double(let neutral)? = first.neutral?.json, kind.stage == .colour
            else { continue }
            members[first.name] = .double(neutral + (range.contains(neutral + 1e-4) ? 1e-4 : -1e-4))
            let near = try AdjustmentRendering.render(
                Self.chart,
                AdjustmentList(operations: [Adjustment(kind, members)]),
                format: .png
            )
            let distance = try TestPixels(near.bytes).psnr(whole)
            #expect(distance > 60, "\(kind): \(distance) dB")
        }
    }

    @Test func `colour operations run in list order, stages in their fixed order`() throws {
        func render(_ steps: [Adjustment]) throws -> TestPixels {
            try TestPixels(
                AdjustmentRendering.render(Self.chart, AdjustmentList(operations: steps), format: .png).bytes
            )
        }
        let (sepia, tint) = (Adjustment.sepia(1), try Adjustment(.tint, ["value": 1]))
        let first = try render([sepia, tint])
        let second = try render([tint, sepia])
        #expect(first.psnr(second) < 35, "the order of the operations matters")
        let whole = try TestPixels(Self.chart)
        let expected = whole.mapped { c in
            let brown = Self.mixes[2].formula(c).enumerated().map { ($0.element - 0.2 * c[$0.offset]) / 0.8 }
            return Self.onLight { l in
                let gains = [1, pow(2, -0.5), 1]
                return (0..<3).map { l[$0] * gains[$0] / Self.grey(gains) }
            }(brown)
        }
        #expect(first.psnr(expected) > 45)
        // The order of stages does not depend on the list: the frame is always finished last.
        let crop = Adjustment.crop(UnitRect(x: 0.25, y: 0.25, width: 0.5, height: 0.5))
        let vignette = try Adjustment(.vignette, ["value": -1])
        let sharpen = try Adjustment(.sharpen, ["amount": 1])
        #expect(try render([vignette, sharpen, sepia, crop]).rgb == render([crop, sepia, sharpen, vignette]).rgb)
    }
}

extension AdjustmentParameter {
    fileprivate var number: Domain? { if case .number = domain { domain } else { nil } }
}

extension TestPixels {
    /// Returns the image of every colour, channels in 0...1, transformed by a function.
    func mapped(_ body: ([Double]) -> [Double]) -> TestPixels {
        mapped { colour, _, _ in body(colour) }
    }

    func mapped(_ body: ([Double], Int, Int) -> [Double]) -> TestPixels {
        var result: [UInt8] = []
        result.reserveCapacity(rgb.count)
        for y in 0..<height {
            for x in 0..<width {
                for value in body(self[x, y].map { Double($0) / 255 }, x, y) {
                    result.append(UInt8((255 * min(1, max(0, value))).rounded()))
                }
            }
        }
        return TestPixels(width: width, height: height, rgb: result)
    }
}
