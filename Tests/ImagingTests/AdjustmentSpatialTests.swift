import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Compares operations that depend on neighbours or on the frame with plain loops, and geometry with ImageMagick's
/// command.
@Suite(.timeLimit(.minutes(5)))
struct AdjustmentSpatialTests {
    /// An image with soft and hard edges and some noise.
    private static let scene = TestImages.png(width: 96, height: 72) { x, y in
        let wave = 110 + 60 * sin(Double(x) / 7) + 40 * cos(Double(y) / 5)
        let step = x > 48 ? 30.0 : 0
        let noise = Double((x &* 7919 &+ y &* 104_729) % 17) - 8
        return (
            UInt8(min(255, max(0, wave + step + noise))), UInt8(min(255, max(0, wave * 0.8 + noise))),
            UInt8(min(255, max(0, 200 - wave / 2))), 255
        )
    }

    private func render(_ bytes: [UInt8], _ steps: [Adjustment], maximumSide: Int? = nil) throws -> TestPixels {
        try TestPixels(
            AdjustmentRendering.render(
                bytes,
                AdjustmentList(operations: steps),
                format: .png,
                maximumSide: maximumSide
            ).bytes
        )
    }

    private func step(_ kind: AdjustmentKind, _ members: JSONObject) throws -> Adjustment {
        try Adjustment(kind, members)
    }

    private func grey(_ c: [Int]) -> Double {
        (0.2126 * Double(c[0]) + 0.7152 * Double(c[1]) + 0.0722 * Double(c[2])) / 255
    }

    private func plane(_ pixels: TestPixels) -> [[Double]] {
        (0..<pixels.height).map { y in (0..<pixels.width).map { grey(pixels[$0, y]) } }
    }

    /// Blurs with a kernel in both directions, repeating edge pixels.
    private func blurred(_ plane: [[Double]], _ kernel: [Double]) -> [[Double]] {
        let reach = kernel.count / 2
        func blurredLine(_ line: [Double]) -> [Double] {
            line.indices.map { index in
                (-reach...reach).reduce(0) { $0 + kernel[$1 + reach] * line[min(line.count - 1, max(0, index + $1))] }
            }
        }
        let across = plane.map(blurredLine)
        let columns = across[0].indices.map { x in blurredLine(across.map { $0[x] }) }
        return plane.indices.map { y in columns.map { $0[y] } }
    }

    @Test func `sharpening is an unsharp mask on brightness`() throws {
        let whole = try TestPixels(Self.scene)
        let plane = plane(whole)
        for (amount, radius, threshold) in [(0.8, 1.0, 0.0), (2, 2.4, 0.03), (1.5, 0.4, 0)] {
            let weights = (-Int((3 * radius).rounded(.up))...Int((3 * radius).rounded(.up))).map {
                exp(-Double($0 * $0) / (2 * radius * radius))
            }
            let soft = blurred(plane, weights.map { $0 / weights.reduce(0, +) })
            let expected = whole.mapped { c, x, y in
                let difference = plane[y][x] - soft[y][x]
                return c.map { abs(difference) >= threshold ? $0 + amount * difference : $0 }
            }
            let pixels = try render(
                Self.scene,
                [
                    step(
                        .sharpen,
                        ["amount": .double(amount), "radius": .double(radius), "threshold": .double(threshold)]
                    )
                ]
            )
            #expect(pixels.psnr(expected) > 48, "\(pixels.psnr(expected)) dB")
            #expect(pixels.psnr(whole) < 47)
        }
    }

    @Test func `clarity is local contrast of the middle tones`() throws {
        let whole = try TestPixels(Self.scene)
        let plane = plane(whole)
        let box = [1.0 / 3, 1.0 / 3, 1.0 / 3]
        let soft = blurred(blurred(blurred(plane, box), box), box)
        for value in [-0.7, 0.9] {
            let expected = whole.mapped { c, x, y in
                let bright = plane[y][x]
                return c.map { $0 + value * (bright - soft[y][x]) * 4 * bright * (1 - bright) }
            }
            let pixels = try render(Self.scene, [step(.clarity, ["value": .double(value)])])
            #expect(pixels.psnr(expected) > 48, "\(pixels.psnr(expected)) dB")
        }
    }

    @Test func `noise reduction is a mean of near and similar pixels`() throws {
        let whole = try TestPixels(Self.scene)
        func parts(_ x: Int, _ y: Int) -> (Double, Double, Double) {
            let c = whole[min(whole.width - 1, max(0, x)), min(whole.height - 1, max(0, y))]
            let bright = grey(c)
            return (bright, Double(c[0]) / 255 - bright, Double(c[2]) / 255 - bright)
        }
        let expected = whole.mapped { _, x, y in
            let (bright, red, blue) = parts(x, y)
            var (sum, weights, sumRed, sumBlue, weightsColour) = (0.0, 0.0, 0.0, 0.0, 0.0)
            for j in -2...2 {
                for i in -2...2 {
                    let other = parts(x + i, y + j)
                    let near = exp(-Double(i * i + j * j) / 4.5)
                    let w = near / pow(1 + pow((other.0 - bright) / 0.06, 2), 2)
                    sum += w * other.0
                    weights += w
                    let distance = (pow(other.1 - red, 2) + pow(other.2 - blue, 2)) / (0.12 * 0.12)
                    let v = near / pow(1 + distance, 2)
                    sumRed += v * other.1
                    sumBlue += v * other.2
                    weightsColour += v
                }
            }
            let newBright = bright + 0.7 * (sum / weights - bright)
            let newRed = red + 0.9 * (sumRed / weightsColour - red)
            let newBlue = blue + 0.9 * (sumBlue / weightsColour - blue)
            let green = -(0.2126 * newRed + 0.0722 * newBlue) / 0.7152
            return [newBright + newRed, newBright + green, newBright + newBlue]
        }
        let pixels = try render(Self.scene, [step(.noiseReduction, ["luminance": 0.7, "colour": 0.9])])
        #expect(pixels.psnr(expected) > 48, "\(pixels.psnr(expected)) dB")
    }

    @Test func `a vignette depends on the distance from the centre of the cropped image`() throws {
        let crop = Adjustment.crop(UnitRect(x: 0, y: 0, width: 0.75, height: 0.5))
        let whole = try render(Self.scene, [crop])
        let (width, height) = (Double(whole.width), Double(whole.height))
        let expected = whole.mapped { c, x, y in
            let distance =
                hypot(Double(x) + 0.5 - width / 2, Double(y) + 0.5 - height / 2) / hypot(width / 2, height / 2)
            let t = min(1, max(0, (distance - (0.6 - 0.2)) / 0.4))
            let gain = pow(2, 2 * -0.8 * t * t * (3 - 2 * t))
            return c.map { AdjustmentOperationTests.code(gain * AdjustmentOperationTests.light($0)) }
        }
        let pixels = try render(
            Self.scene,
            [step(.vignette, ["value": -0.8, "midpoint": 0.6, "feather": 0.4]), crop]
        )
        #expect(pixels.psnr(expected) > 48, "\(pixels.psnr(expected)) dB")
    }

    @Test func `grain is grey, reproducible for a seed, and has a mean near zero`() throws {
        let flat = TestImages.png(width: 200, height: 160) { _, _ in (128, 128, 128, 255) }
        let first = try render(flat, [step(.grain, ["value": 0.5, "size": 0.01, "seed": 7])])
        let same = try render(flat, [step(.grain, ["value": 0.5, "size": 0.01, "seed": 7])])
        let other = try render(flat, [step(.grain, ["value": 0.5, "size": 0.01, "seed": 8])])
        #expect(first.rgb == same.rgb)
        #expect(first.psnr(other) < 35)
        func noise(_ x: UInt32, _ y: UInt32) -> Double {
            var mixed = x &* 0x8DA6_B343 ^ y &* 0xD816_3841 ^ 7 &* 0xCB1A_B31F
            mixed = (mixed ^ mixed >> 16) &* 0x7FEB_352D
            mixed = (mixed ^ mixed >> 15) &* 0x846C_A68B
            mixed ^= mixed >> 16
            return Double(mixed >> 8) / 8_388_607.5 - 1
        }
        let expected = try TestPixels(flat).mapped { c, x, y in
            // Cells of a hundredth of 200 pixels.
            let (u, v) = ((Double(x) + 0.5) / 2, (Double(y) + 0.5) / 2)
            let (left, top) = (u.rounded(.down), v.rounded(.down))
            func soft(_ t: Double) -> Double { t * t * (3 - 2 * t) }
            let (i, j) = (UInt32(left), UInt32(top))
            let upper = noise(i, j) + soft(u - left) * (noise(i + 1, j) - noise(i, j))
            let lower = noise(i, j + 1) + soft(u - left) * (noise(i + 1, j + 1) - noise(i, j + 1))
            return c.map { $0 + 0.1 * (upper + soft(v - top) * (lower - upper)) }
        }
        #expect(first.psnr(expected) > 48, "\(first.psnr(expected)) dB")
        let mean = first.rgb.reduce(0) { $0 + Double($1) } / Double(first.rgb.count)
        #expect(abs(mean - 128) < 2)
    }

    @Test func `watermarks are drawn at their position with their transparency`() throws {
        let flat = TestImages.png(width: 200, height: 100) { _, _ in (100, 100, 100, 255) }
        let mark = TestImages.png(width: 40, height: 20) { x, _ in x < 20 ? (255, 0, 0, 255) : (0, 255, 0, 0) }
        let text = Data(mark).base64EncodedString()
        let pixels = try render(
            flat,
            [
                step(
                    .pictureWatermark,
                    ["picture": .string(text), "position": "topRight", "size": 0.2, "margin": 0.1, "opacity": 0.5]
                )
            ]
        )
        // 40 by 20 pixels, ten from the edges.
        #expect(pixels[155, 20].elementsEqual([178, 50, 50], by: { abs($0 - $1) <= 1 }), "\(pixels[155, 20])")
        #expect(pixels[185, 20] == [100, 100, 100], "the watermark's own transparency")
        #expect(pixels[140, 20] == [100, 100, 100] && pixels[155, 40] == [100, 100, 100])
        let written = try render(
            flat,
            [
                step(
                    .textWatermark,
                    [
                        "text": "HHHH", "colour": "#0000ff", "position": "bottomLeft", "size": 0.3, "margin": 0,
                        "opacity": 1,
                    ]
                )
            ]
        )
        let blue = (0..<100).flatMap { y in (0..<200).map { ($0, y) } }.filter { written[$0.0, $0.1] == [0, 0, 255] }
        #expect(blue.count > 150)
        #expect(blue.allSatisfy { $0.0 < 61 && $0.1 > 30 })
        for image in ["AAAA", "iVBORw0KGgo="] {
            let error = #expect(throws: ImagingError.self) {
                try render(flat, [step(.pictureWatermark, ["picture": .string(image)])])
            }
            // The error is in the options, not in the photo.
            #expect(error?.name == "invalid_options")
        }
    }

    @Test func `a watermark that would become too large is refused before it is scaled`() throws {
        let wide = TestImages.png(width: 4000, height: 2) { _, _ in (100, 100, 100, 255) }
        // 4,000 by 64,000 pixels are too much memory, 4,000 by 80,000 too many rows.
        for height in [16, 20] {
            let mark = TestImages.png(width: 1, height: height) { _, _ in (255, 0, 0, 255) }
            for engine in RenderEngine.allCases {
                let members: JSONObject = ["picture": .string(Data(mark).base64EncodedString()), "size": 1]
                let list = AdjustmentList(operations: [try step(.pictureWatermark, members)])
                let error = #expect(throws: ImagingError.self) {
                    try AdjustmentRendering.render(wide, list, format: .png, engine: engine)
                }
                #expect(error?.name == "limit_exceeded", "\(height), \(engine): \(error?.message ?? "")")
            }
        }
    }

    @Test func `watermarks over transparent pixels are composed as Porter and Duff's over`() throws {
        // The opacity of the image grows with the column, that of the mark with the row.
        let below = TestImages.png(width: 200, height: 100) { x, _ in (40, 120, 220, UInt8(255 * x / 199)) }
        let mark = TestImages.png(width: 200, height: 100) { _, y in (250, 200, 10, UInt8(255 * y / 99)) }
        for opacity in [0.3, 0.7, 1] {
            let members: JSONObject = [
                "picture": .string(Data(mark).base64EncodedString()), "position": "topLeft", "size": 1, "margin": 0,
                "opacity": .double(opacity),
            ]
            for engine in RenderEngine.allCases {
                let list = AdjustmentList(operations: [try step(.pictureWatermark, members)])
                let bytes = try AdjustmentRendering.render(below, list, format: .png, engine: engine).bytes
                let header = try ImageHeader.read(bytes)
                let image = try Decoder.decode(bytes, header, eighths: 8, scale: 1, limits: PixelLimits())
                var pixels: [UInt16] = []
                try image.withPixels { pixels = Array(UnsafeBufferPointer(start: $0, count: 4 * $1)) }
                var worst = 0.0
                for y in 0..<100 {
                    for x in 0..<200 {
                        let over = opacity * Double(255 * y / 99) / 255
                        let under = Double(255 * x / 199) / 255
                        let all = over + under * (1 - over)
                        let offset = 4 * (200 * y + x)
                        worst = max(worst, abs(Double(65_535 - pixels[offset + 3]) / 65_535 - all))
                        // The colour of fully transparent pixels is not compared.
                        for (channel, colours) in [(10.0, 220.0), (200, 120), (250, 40)].enumerated() {
                            let colour = (over * colours.0 + under * (1 - over) * colours.1) / 255
                            worst = max(worst, abs(all * Double(pixels[offset + channel]) / 65_535 - colour))
                        }
                    }
                }
                #expect(worst < 0.004, "\(engine), opacity \(opacity): differs by \(worst)")
            }
        }
    }

    @Test func `a resize fits into its limits and never enlarges`() throws {
        for (width, height, expected) in [
            (48, 0, (48, 36)), (0, 36, (48, 36)), (40, 20, (27, 20)), (400, 300, (96, 72)),
        ] {
            let pixels = try render(Self.scene, [step(.resize, ["width": JSON(width), "height": JSON(height)])])
            #expect((pixels.width, pixels.height) == expected)
        }
        let both = try render(Self.scene, [step(.resize, ["width": 48]), .rotate(.quarter)])
        #expect((both.width, both.height) == (36, 48))
    }

    @Test func `previews of every operation resemble the scaled full render`() throws {
        let soft = TestImages.png(width: 640, height: 480) { x, y in
            (UInt8(128 + 100 * sin(Double(x) / 60)), UInt8(128 + 100 * cos(Double(y) / 50)), UInt8((x + y) / 5), 255)
        }
        // With noise and a border of one colour, for the operations that do not change a smooth image.
        let rough = TestImages.png(width: 640, height: 480) { x, y in
            guard (40..<600).contains(x), (40..<440).contains(y) else { return (200, 200, 200, 255) }
            let noise = Double((x &* 7919 &+ y &* 104_729) % 25) - 12
            let (red, green) = (128 + 100 * sin(Double(x) / 60) + noise, 128 + 100 * cos(Double(y) / 50) + noise)
            return (UInt8(red), UInt8(green), UInt8(max(0, Double(x + y) / 5 + noise)), 255)
        }
        let pixels = try (soft: TestPixels(soft), rough: TestPixels(rough))
        for kind in AdjustmentKind.all where kind != .pictureWatermark {
            let isRough = [.noiseReduction, .median, .trim].contains(kind)
            let bytes = isRough ? rough : soft
            var members = JSONObject()
            for parameter in kind.parameters {
                guard !parameter.isModifier, case .number(let range) = parameter.domain, parameter.neutral != nil,
                    kind != .perspective
                else { continue }
                members[parameter.name] = .double(range.lowerBound < 0 ? range.lowerBound / 2 : range.upperBound / 2)
            }
            if kind == .perspective { members = ["topLeftX": 0.1, "topLeftY": 0.05, "bottomRightX": 0.9] }
            if kind == .grain { members["size"] = 0.02 }
            if kind == .resize { members["width"] = 500 }
            if kind == .textWatermark { members["text"] = "Safelight" }
            if kind == .timeRange { members = ["start": 1] }
            if kind == .straighten { members["value"] = 7 }
            // These need several values that go together, or a table.
            let isComposed = [.crop, .levels, .curve, .lut].contains(kind)
            let list = AdjustmentList(
                operations: [isComposed ? try EngineFixtures.cases(kind)[1] : try step(kind, members)]
            )
            // TIFF, because compressing PNG would take most of the time.
            let full = try AdjustmentRendering.render(bytes, list, format: .tiff)
            // If the operation changed nothing, a preview without it would resemble the full render too.
            let isForVideos = [.timeRange, .speed, .volume].contains(kind)
            let isUnchanged = try TestPixels(full.bytes) == (isRough ? pixels.rough : pixels.soft)
            #expect(isUnchanged == isForVideos, "\(kind)")
            let small = try RenditionRenderer.render(
                full.bytes,
                RenditionOptions(target: .size(width: 160, height: 160), resizeMode: .exact, format: .tiff)
            )
            let preview = try render(bytes, list.operations, maximumSide: 160)
            #expect((preview.width, preview.height) == (small.pixelWidth, small.pixelHeight), "\(kind)")
            let distance = try TestPixels(small.bytes).psnr(preview)
            #expect(distance > 32, "\(kind): \(distance) dB")
        }
    }

    // MARK: - Comparison with ImageMagick's command

    /// Writes a smooth image for other programs, for which the choice of filter hardly matters; returns its bytes and
    /// path.
    private func soft(_ folder: TemporaryFolder) throws -> ([UInt8], String) {
        let bytes = TestImages.png(width: 320, height: 240) { x, y in
            (
                UInt8(128 + 90 * sin(Double(x) / 23) * cos(Double(y) / 31)), UInt8(128 + 90 * cos(Double(x + y) / 29)),
                UInt8(60 + x / 4 + y / 4), 255
            )
        }
        let path = folder.file("soft.png")
        try Data(bytes).write(to: URL(filePath: path))
        return (bytes, path)
    }

    @Test func `crop, rotate, flip, straighten and perspective agree with ImageMagick's convert`() throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("convert")
        let (bytes, path) = try soft(folder)
        // The largest rectangle of the same aspect ratio in the rotated image.
        let angle = 8 * Double.pi / 180
        let factor = 240 / (320 * sin(angle) + 240 * cos(angle))
        let (width, height) = (Int(320 * factor), Int(240 * factor))
        let area = try step(
            .perspective,
            [
                "topLeftX": 0.1, "topLeftY": 0.05, "topRightX": 0.95, "topRightY": 0.1, "bottomRightX": 0.9,
                "bottomRightY": 0.95, "bottomLeftX": 0.05, "bottomLeftY": 0.9,
            ]
        )
        let across = Int((272.0 * 272 + 12 * 12).squareRoot().rounded())
        let down = Int((16.0 * 16 + 204 * 204).squareRoot().rounded())
        let corners = "32,12 0,0 304,24 \(across),0 288,228 \(across),\(down) 16,216 0,\(down)"
        let cases: [([Adjustment], [String], Double)] = [
            (
                [.crop(UnitRect(x: 0.25, y: 0.125, width: 0.5, height: 0.75))],
                ["-crop", "160x180+80+30", "+repage"], .infinity
            ), ([.rotate(.quarter)], ["-rotate", "90"], .infinity),
            ([.rotate(.threeQuarters), .flip(.horizontal)], ["-rotate", "270", "-flop"], .infinity),
            ([.flip(.vertical)], ["-flip"], .infinity),
            (
                [.straighten(8)],
                [
                    "-virtual-pixel", "edge", "-filter", "Lanczos", "-define",
                    "distort:viewport=\(width)x\(height)+0+0", "-distort", "ScaleRotateTranslate",
                    "160,120 1 8 \(Double(width) / 2),\(Double(height) / 2)",
                ], 42
            ),
            (
                [area],
                [
                    "-virtual-pixel", "edge", "-define", "distort:viewport=\(across)x\(down)+0+0", "-distort",
                    "Perspective", corners,
                ], 42
            ),
        ]
        for (steps, arguments, minimum) in cases {
            let output = folder.file("out.png")
            _ = try ExternalTool.run(convert, [path] + arguments + ["-depth", "8", output])
            let theirs = try TestPixels([UInt8](Data(contentsOf: URL(filePath: output))))
            let ours = try render(bytes, steps)
            #expect((ours.width, ours.height) == (theirs.width, theirs.height), "\(arguments)")
            let distance = ours.psnr(theirs)
            #expect(distance >= minimum, "\(arguments): \(distance) dB")
        }
    }
}
