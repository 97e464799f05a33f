import ImageFormats
import Foundation
import JSONValue
@testable import Imaging
import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct AdjustmentRenderingTests {
    private func render(
        _ bytes: [UInt8],
        _ operations: [Adjustment],
        maximumSide: Int? = nil
    ) throws -> TestPixels {
        let image = try AdjustmentRendering.render(
            bytes,
            AdjustmentList(operations: operations),
            format: .png,
            maximumSide: maximumSide
        )
        let pixels = try TestPixels(image.bytes)
        #expect((pixels.width, pixels.height) == (image.pixelWidth, image.pixelHeight))
        return pixels
    }

    private func flat(_ red: UInt8, _ green: UInt8, _ blue: UInt8) -> [UInt8] {
        TestImages.png(width: 4, height: 4) { _, _ in (red, green, blue, 255) }
    }

    /// Sixteen colours that differ in every channel.
    private static let palette = TestImages.png(width: 32, height: 24) { x, y in
        (UInt8(x * 8), UInt8(y * 10), UInt8((x + y) * 4), 255)
    }

    @Test func `a neutral list gives the original pixels`() throws {
        let whole = try TestPixels(Self.palette)
        #expect(try render(Self.palette, []).rgb == whole.rgb)
        #expect(
            try render(
                Self.palette,
                [
                    .exposure(0), .contrast(0), .saturation(0), .temperature(0), .blackAndWhite(0), .crop(.full),
                    .straighten(0),
                ]
            ).rgb == whole.rgb
        )
    }

    @Test func `operations that cancel leave the original pixels`() throws {
        let whole = try TestPixels(Self.palette)
        let pairs: [[Adjustment]] = [
            [.exposure(2), .exposure(-2)], [.contrast(0.8), .contrast(-0.8)],
            [.flip(.horizontal), .flip(.horizontal)], [.rotate(.quarter), .rotate(.threeQuarters)],
        ]
        for pair in pairs {
            let pixels = try render(Self.palette, pair)
            #expect(pixels.psnr(whole) > 48, "\(pair)")
        }
    }

    @Test func `colours agree with the documented formulas`() throws {
        func light(_ value: Int) -> Double { ToneCurve.decoded(Double(value) / 255) }
        func byte(_ light: Double) -> Int { Int((255 * ToneCurve.encoded(min(1, max(0, light)))).rounded()) }
        let (r, g, b) = (light(120), light(80), light(40))
        let grey = 0.2126 * r + 0.7152 * g + 0.0722 * b
        let (warm, cool) = (exp2(0.25), exp2(-0.25))
        let white = 0.2126 * warm + 0.7152 + 0.0722 * cool
        func curve(_ value: Int, _ exponent: Double) -> Int {
            let v = Double(value) / 255
            let bent = v < 0.5 ? pow(2 * v, exponent) / 2 : 1 - pow(2 * (1 - v), exponent) / 2
            return Int((255 * bent).rounded())
        }
        let expected: [(Adjustment, [Int])] = [
            (.exposure(1), [byte(2 * r), byte(2 * g), byte(2 * b)]),
            (.exposure(-1.5), [r, g, b].map { byte($0 * exp2(-1.5)) }),
            (.exposure(5), [r, g, b].map { byte(32 * $0) }),
            (.saturation(-1), [byte(grey), byte(grey), byte(grey)]),
            (.saturation(0.5), [r, g, b].map { byte(grey + 1.5 * ($0 - grey)) }),
            (.blackAndWhite(1), [byte(grey), byte(grey), byte(grey)]),
            (.blackAndWhite(0.25), [r, g, b].map { byte(0.25 * grey + 0.75 * $0) }),
            (.temperature(0.5), [byte(r * warm / white), byte(g / white), byte(b * cool / white)]),
            (.contrast(1), [curve(120, 2), curve(80, 2), curve(40, 2)]),
            (.contrast(-0.5), [120, 80, 40].map { curve($0, exp2(-0.5)) }),
        ]
        for (operation, colour) in expected {
            let pixel = try render(flat(120, 80, 40), [operation])[1, 1]
            for channel in 0..<3 {
                #expect(abs(pixel[channel] - colour[channel]) <= 1, "\(operation): \(pixel), expected \(colour)")
            }
        }
        #expect(try render(flat(0, 0, 0), [.contrast(1), .exposure(3), .temperature(1)])[0, 0] == [0, 0, 0])
        #expect(try render(flat(255, 255, 255), [.contrast(0.6)])[0, 0] == [255, 255, 255])
    }

    @Test func `many operations are composed into a few steps`() throws {
        let sliders: [Adjustment] = [
            .exposure(0.3), .temperature(0.2), .saturation(0.1), .blackAndWhite(0.2), .exposure(0.1), .contrast(0.2),
            .contrast(0.1), .saturation(-0.1), .temperature(0.1), .exposure(0.2),
        ]
        #expect(try AdjustmentColour(sliders).steps.count == 4, "matrix, curve, matrix, curve")
        #expect(try AdjustmentColour([.exposure(1), .crop(.full), .exposure(0)]).steps.count == 2)
        #expect(try AdjustmentColour([.contrast(0.2), .brightness(0.1)]).steps.isEmpty, "a table of 256 values")
    }

    @Test func `composed operations equal separate renders in sequence`() throws {
        let operations: [Adjustment] = [.exposure(-0.5), .temperature(0.3), .contrast(0.3), .saturation(-0.4)]
        let together = try render(Self.palette, operations)
        var bytes = Self.palette
        for operation in operations {
            bytes = try AdjustmentRendering.render(bytes, AdjustmentList(operations: [operation]), format: .png).bytes
        }
        let decibels = try TestPixels(bytes).psnr(together)
        // Separate renders round to eight bits three times more.
        #expect(decibels > 42)
    }

    @Test(arguments: 1...8)
    func `geometry starts from the upright image`(orientation: Int) throws {
        let bytes = TestImages.jpeg(width: 96, height: 64, orientation: orientation)
        #expect(Quadrant.all(try render(bytes, [])) == [.red, .green, .blue, .yellow])
        let rotated = try render(bytes, [.rotate(.quarter)])
        #expect((rotated.width, rotated.height) == (64, 96))
        #expect(Quadrant.all(rotated) == [.blue, .red, .yellow, .green])
        let cut = try render(
            bytes,
            [.rotate(.quarter), .crop(UnitRect(x: 0, y: 0, width: 0.5, height: 1)), .flip(.vertical)]
        )
        #expect((cut.width, cut.height) == (32, 96))
        #expect(Quadrant.all(cut) == [.yellow, .yellow, .blue, .blue])
    }

    @Test func `rotations and flips are lossless`() throws {
        let whole = try TestPixels(Self.palette)
        let (width, height) = (whole.width, whole.height)
        let cases: [(Adjustment, (Int, Int) -> (Int, Int))] = [
            (.rotate(.quarter), { ($1, height - 1 - $0) }), (.rotate(.half), { (width - 1 - $0, height - 1 - $1) }),
            (.rotate(.threeQuarters), { (width - 1 - $1, $0) }), (.flip(.horizontal), { (width - 1 - $0, $1) }),
            (.flip(.vertical), { ($0, height - 1 - $1) }),
            (.crop(UnitRect(x: 0.25, y: 0.5, width: 0.5, height: 0.25)), { ($0 + 8, $1 + 12) }),
        ]
        for (operation, source) in cases {
            let pixels = try render(Self.palette, [operation])
            for y in 0..<pixels.height {
                for x in 0..<pixels.width {
                    let (fromX, fromY) = source(x, y)
                    #expect(pixels[x, y] == whole[fromX, fromY], "\(operation) at \(x), \(y)")
                }
            }
        }
    }

    @Test func `random rotations, flips and crops equal moving pixels one by one`() throws {
        let source = try TestPixels(Self.palette)
        for seed in UInt64(1)...25 {
            var generator = SeededRandom(seed: seed)
            let operations = AdjustmentList.random(count: 12, using: &generator).operations.filter {
                [.rotate, .flip, .crop].contains($0.kind)
            }
            var rows = (0..<source.height).map { y in (0..<source.width).map { source[$0, y] } }
            for operation in operations {
                switch operation.kind {
                case .rotate:
                    for _ in 0..<Int(operation.number()) / 90 {
                        let before = rows
                        rows = before[0].indices.map { x in before.indices.reversed().map { before[$0][x] } }
                    }
                case .flip where operation == .flip(.horizontal): rows = rows.map { $0.reversed() }
                case .flip: rows.reverse()
                case .crop:
                    let cut = RenditionGeometry.pixels(of: operation.rect, width: rows[0].count, height: rows.count)
                    rows = rows[cut.y..<cut.y + cut.height].map { Array($0[cut.x..<cut.x + cut.width]) }
                default: break
                }
            }
            let pixels = try render(Self.palette, operations)
            #expect(pixels.rgb.map(Int.init) == rows.flatMap { $0.flatMap(\.self) }, "seed \(seed): \(operations)")
        }
    }

    @Test func `straightening rotates clockwise and keeps the largest rectangle of the same shape`() throws {
        // A horizontal edge that is rotated clockwise descends towards the right.
        let bytes = TestImages.jpeg(width: 200, height: 120) { _, y in y < 60 ? (250, 250, 250) : (10, 10, 10) }
        let pixels = try render(bytes, [.straighten(10)])
        let angle = 10 * Double.pi / 180
        let factor = 120 / (200 * sin(angle) + 120 * cos(angle))
        #expect((pixels.width, pixels.height) == (Int(200 * factor), Int(120 * factor)))
        func edge(_ x: Int) -> Int { (0..<pixels.height).first { pixels[x, $0][0] < 128 } ?? -1 }
        let slope = Double(edge(pixels.width - 10) - edge(10)) / Double(pixels.width - 20)
        #expect(abs(slope - tan(angle)) < 0.02)
        // No corner contains pixels from outside: a white image stays white.
        let white = TestImages.png(width: 90, height: 60) { _, _ in (255, 255, 255, 255) }
        for degrees in [-45.0, -20, -1, 0.5, 30, 45] {
            let rotated = try render(white, [.straighten(degrees)])
            #expect(rotated.rgb.allSatisfy { $0 == 255 }, "\(degrees)")
            #expect(abs(Double(rotated.width) / Double(rotated.height) - 1.5) < 0.06, "\(degrees)")
        }
    }

    @Test func `straightening forth and back keeps the centre of the image`() throws {
        let bytes = TestImages.jpeg(width: 240, height: 240) { x, y in
            (UInt8(128 + 100 * sin(Double(x) / 9)), UInt8(128 + 100 * cos(Double(y) / 11)), 90)
        }
        let cut = Adjustment.crop(UnitRect(x: 0.25, y: 0.25, width: 0.5, height: 0.5))
        let whole = try render(bytes, [.crop(UnitRect(x: 0.375, y: 0.375, width: 0.25, height: 0.25))])
        let rotated = try render(bytes, [.straighten(20), .straighten(-20)])
        let x = (rotated.width - whole.width) / 2
        let y = (rotated.height - whole.height) / 2
        var worst = 0
        for row in 0..<whole.height {
            for column in 0..<whole.width {
                worst = max(worst, abs(rotated[x + column, y + row][0] - whole[column, row][0]))
            }
        }
        #expect(worst < 24, "off by \(worst), half a pixel at most")
        #expect(try render(bytes, [.straighten(5), cut]).width > 100)
    }

    @Test func `a preview resembles the scaled full render`() throws {
        let bytes = TestImages.jpeg(width: 800, height: 600, orientation: 6)
        let lists: [[Adjustment]] = [
            [], [.exposure(0.5), .crop(UnitRect(x: 0.1, y: 0.2, width: 0.6, height: 0.5))],
            [.straighten(7), .contrast(0.4), .rotate(.quarter)],
        ]
        for operations in lists {
            let full = try AdjustmentRendering.render(bytes, AdjustmentList(operations: operations), format: .png)
            let small = try RenditionRenderer.render(
                full.bytes,
                RenditionOptions(target: .size(width: 100, height: 100), resizeMode: .exact, format: .png)
            )
            let preview = try render(bytes, operations, maximumSide: 100)
            #expect((preview.width, preview.height) == (small.pixelWidth, small.pixelHeight))
            #expect(try TestPixels(small.bytes).psnr(preview) > 28, "\(operations)")
        }
    }

    @Test func `a PNG keeps its transparency, and a JPEG does not show the colour of transparent pixels`() throws {
        let png = TestImages.png(width: 40, height: 40) { x, _ in x < 20 ? (200, 30, 30, 255) : (0, 0, 255, 0) }
        let list = AdjustmentList(operations: [.straighten(15), .exposure(0.2)])
        let image = try AdjustmentRendering.render(png, list, format: .png)
        #expect(try ImageProbe.info(of: image.bytes).hasAlpha)
        let jpeg = try TestPixels(AdjustmentRendering.render(png, list, format: .jpeg, quality: 100).bytes)
        for x in 0..<jpeg.width { #expect(jpeg[x, jpeg.height / 2][2] <= jpeg[x, jpeg.height / 2][0] + 8) }
    }

    @Test func `borders that make an image too large are refused as limit_exceeded`() throws {
        let bytes = TestImages.jpeg(width: 300, height: 200)
        // Each border doubles the shorter side.
        let border = try Adjustment(.border, ["size": 0.5])
        for count in [10, 64] {
            let list = AdjustmentList(operations: Array(repeating: border, count: count))
            for engine in RenderEngine.allCases {
                for side in [nil, 100] as [Int?] {
                    let error = #expect(throws: ImagingError.self) {
                        try AdjustmentRendering.render(bytes, list, maximumSide: side, engine: engine)
                    }
                    #expect(error?.name == "limit_exceeded", "\(count), \(engine): \(error?.message ?? "")")
                }
            }
            let error = #expect(throws: ImagingError.self) { try AdjustmentDescription.script(bytes, list) }
            #expect(error?.name == "limit_exceeded", "\(count)")
        }
    }

    @Test func `renders with impossible options are refused as invalid_options`() {
        let list = AdjustmentList(operations: [])
        let bytes = TestImages.jpeg(width: 8, height: 8)
        for (format, quality, side) in [(ImageFormat.heic, 90, 10), (.jpeg, 101, 10), (.jpeg, 90, 0)] {
            let error = #expect(throws: ImagingError.self) {
                try AdjustmentRendering.render(bytes, list, format: format, quality: quality, maximumSide: side)
            }
            #expect(error?.name == "invalid_options")
        }
    }
}
