import ImageFormats
import Foundation
import Imaging
import PhotoModel
import SamplePhotos
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct RenditionTests {
    struct Case: Sendable {
        let source: (Int, Int)
        let target: (Int, Int)
        let mode: ImageContentMode
        let expected: (Int, Int)
    }

    /// The sizes of the exact mode.
    static let exact: [Case] = [
        Case(source: (160, 120), target: (80, 80), mode: .aspectFit, expected: (80, 60)),
        Case(source: (120, 160), target: (80, 80), mode: .aspectFit, expected: (60, 80)),
        Case(source: (160, 120), target: (33, 1000), mode: .aspectFit, expected: (33, 25)),
        Case(source: (300, 7), target: (10, 10), mode: .aspectFit, expected: (10, 1)),
        Case(source: (160, 120), target: (80, 80), mode: .aspectFill, expected: (80, 80)),
        Case(source: (160, 120), target: (31, 77), mode: .aspectFill, expected: (31, 77)),
        Case(source: (400, 3), target: (20, 20), mode: .aspectFill, expected: (20, 20)),
        Case(source: (5, 5000), target: (512, 512), mode: .aspectFill, expected: (512, 512)),
        Case(source: (16, 12), target: (40, 40), mode: .aspectFit, expected: (40, 30)),
        Case(source: (16, 12), target: (40, 40), mode: .aspectFill, expected: (40, 40)),
        Case(source: (1, 1), target: (5, 5), mode: .aspectFit, expected: (5, 5)),
    ]

    private func source(_ size: (Int, Int), isPNG: Bool) -> [UInt8] {
        guard isPNG else { return TestImages.jpeg(width: size.0, height: size.1) }
        return TestImages.png(width: size.0, height: size.1) { x, y in
            let (red, green, blue) = TestImages.colour(x, y, width: size.0, height: size.1, seed: 1)
            return (red, green, blue, 255)
        }
    }

    @Test(arguments: exact, [false, true])
    func `exact sizes are those of the table`(_ test: Case, isPNG: Bool) throws {
        let options = RenditionOptions(
            target: .size(width: test.target.0, height: test.target.1),
            contentMode: test.mode,
            resizeMode: .exact
        )
        let image = try RenditionRenderer.render(source(test.source, isPNG: isPNG), options)
        #expect((image.pixelWidth, image.pixelHeight) == test.expected)
        let info = try ImageProbe.info(of: image.bytes)
        #expect((info.pixelWidth, info.pixelHeight) == test.expected)
        #expect(image.isUpscaled == (test.expected.0 > test.source.0 || test.expected.1 > test.source.1))
    }

    @Test(arguments: [false, true])
    func `resize mode none and maximum size ignore the target`(isPNG: Bool) throws {
        let bytes = source((160, 120), isPNG: isPNG)
        for options in [
            RenditionOptions(target: .size(width: 10, height: 10), contentMode: .aspectFill, resizeMode: .none),
            RenditionOptions(target: .maximum, contentMode: .aspectFill, resizeMode: .exact),
            RenditionOptions(target: .maximum, resizeMode: .fast),
        ] {
            let image = try RenditionRenderer.render(bytes, options)
            #expect((image.pixelWidth, image.pixelHeight) == (160, 120))
            #expect(!image.isUpscaled)
        }
    }

    @Test(arguments: [false, true])
    func `the fast mode gives the target size and never enlarges`(isPNG: Bool) throws {
        let bytes = source((640, 480), isPNG: isPNG)
        for side in [7, 60, 80, 100, 120, 160, 200, 320, 500, 640, 900] {
            let options = RenditionOptions(target: .size(width: side, height: side))
            let image = try RenditionRenderer.render(bytes, options)
            #expect(image.pixelWidth == min(side, 640), "side \(side)")
            #expect(abs(image.pixelWidth * 3 - image.pixelHeight * 4) <= 4, "side \(side)")
            #expect(!image.isUpscaled)
        }
    }

    /// The fast mode makes a strip shorter even if it cannot become narrower.
    @Test(
        arguments: [
            Case(source: (1, 2000), target: (300, 300), mode: .aspectFit, expected: (1, 300)),
            Case(source: (2000, 1), target: (300, 300), mode: .aspectFit, expected: (300, 1)),
            Case(source: (2, 5000), target: (4000, 4000), mode: .aspectFit, expected: (2, 4000)),
            Case(source: (4000, 100), target: (3999, 3999), mode: .aspectFit, expected: (3999, 100)),
            Case(source: (4000, 100), target: (3999, 99), mode: .aspectFill, expected: (3999, 100)),
            Case(source: (1, 2000), target: (300, 300), mode: .aspectFill, expected: (1, 2000)),
            Case(source: (300, 200), target: (300, 300), mode: .aspectFit, expected: (300, 200)),
        ],
        [false, true]
    )
    func `the fast mode scales a strip down to the target`(_ test: Case, isPNG: Bool) throws {
        let options = RenditionOptions(
            target: .size(width: test.target.0, height: test.target.1),
            contentMode: test.mode
        )
        let image = try RenditionRenderer.render(source(test.source, isPNG: isPNG), options)
        #expect((image.pixelWidth, image.pixelHeight) == test.expected)
        #expect(!image.isUpscaled)
    }

    @Test func `a single pixel is enlarged only in the exact mode`() throws {
        let bytes = TestImages.jpeg(width: 1, height: 1)
        for mode in [ImageResizeMode.none, .fast] {
            let image = try RenditionRenderer.render(
                bytes,
                RenditionOptions(target: .size(width: 99, height: 99), resizeMode: mode)
            )
            #expect((image.pixelWidth, image.pixelHeight) == (1, 1))
        }
    }

    @Test(arguments: 0...8)
    func `every orientation is rendered upright`(orientation: Int) throws {
        let bytes = TestImages.jpeg(width: 96, height: 64, orientation: orientation)
        let info = try ImageProbe.info(of: bytes)
        #expect((info.pixelWidth, info.pixelHeight) == (96, 64))
        let options = RenditionOptions(target: .size(width: 48, height: 48), resizeMode: .exact)
        let image = try RenditionRenderer.render(bytes, options)
        #expect((image.pixelWidth, image.pixelHeight) == (48, 32))
        #expect(Quadrant.all(try TestPixels(image.bytes)) == [.red, .green, .blue, .yellow])
    }

    @Test(arguments: 1...8)
    func `a crop applies to the image as displayed`(orientation: Int) throws {
        let bytes = TestImages.jpeg(width: 96, height: 64, orientation: orientation)
        let options = RenditionOptions(
            target: .size(width: 24, height: 32),
            contentMode: .aspectFill,
            resizeMode: .exact,
            crop: UnitRect(x: 0.5, y: 0, width: 0.5, height: 1)
        )
        let image = try RenditionRenderer.render(bytes, options)
        #expect((image.pixelWidth, image.pixelHeight) == (24, 32))
        #expect(Quadrant.all(try TestPixels(image.bytes)) == [.green, .green, .yellow, .yellow])
    }

    @Test(arguments: 1...8)
    func `reducing rows of a JPEG gives the same as reducing the whole image`(orientation: Int) throws {
        let jpeg = TestImages.jpeg(width: 333, height: 251, orientation: orientation)
        let whole = try RenditionRenderer.render(jpeg, RenditionOptions(format: .png)).bytes
        var options = RenditionOptions(target: .size(width: 120, height: 90), resizeMode: .exact, format: .png)
        options.crop = UnitRect(x: 0.13, y: 0.27, width: 0.61, height: 0.55)
        for mode in [ImageContentMode.aspectFit, .aspectFill] {
            options.contentMode = mode
            let fromRows = try TestPixels(RenditionRenderer.render(jpeg, options).bytes)
            let distance = try fromRows.psnr(TestPixels(RenditionRenderer.render(whole, options).bytes))
            #expect(distance > 45, "\(distance) dB")
        }
    }

    @Test func `orientation is applied from a PNG's eXIf chunk and from XMP alone`() throws {
        var exif = ExifBlock()
        exif.main.append(.short(0x0112, 6))
        let png = TestImages.png(width: 40, height: 20, chunks: [("eXIf", exif.bytes)]) { x, _ in
            x < 20 ? (200, 30, 30, 255) : (30, 30, 200, 255)
        }
        let fromPNG = try TestPixels(RenditionRenderer.render(png, RenditionOptions()).bytes)
        #expect((fromPNG.width, fromPNG.height) == (20, 40))
        #expect(Quadrant(fromPNG.colour(0.5, 0.2)) == .red)
        #expect(Quadrant(fromPNG.colour(0.5, 0.8)) == .blue)

        let xmp = TestImages.xmpSegment("tiff:Orientation=\"6\"")
        let jpeg = TestImages.jpeg(width: 40, height: 60, orientation: 6, exif: nil, segments: [xmp])
        let fromXMP = try TestPixels(RenditionRenderer.render(jpeg, RenditionOptions()).bytes)
        #expect((fromXMP.width, fromXMP.height) == (40, 60))
        #expect(Quadrant.all(fromXMP) == [.red, .green, .blue, .yellow])
    }

    @Test func `derived images contain no metadata of the original`() throws {
        var exif = ExifBlock()
        exif.main.append(.ascii(0x010E, "SECRETTEXT"))
        exif.setLocation(latitude: 52.5, longitude: 13.4)
        exif.thumbnail = TestImages.jpeg(width: 16, height: 12)
        let segments = [
            TestImages.xmpSegment("hdrgm:Version=\"1.0\" xmp:Label=\"SECRETTEXT\""),
            JPEGEncoder.segment(0xFE, Array("SECRETTEXT".utf8)),
        ]
        let bytes = TestImages.jpeg(width: 64, height: 48, orientation: 1, exif: exif, segments: segments)
        for format in ImageFormat.allCases where format.canEncode {
            let options = RenditionOptions(
                target: .size(width: 32, height: 32),
                resizeMode: .exact,
                crop: UnitRect(x: 0, y: 0, width: 0.5, height: 0.5),
                format: format
            )
            let image = try RenditionRenderer.render(bytes, options)
            let data = Data(image.bytes)
            for trace in ["SECRETTEXT", "Exif", "hdrgm", "Thumb", "GPS", "date:", "picture"] {
                #expect(data.range(of: Data(trace.utf8)) == nil, "\(trace) in \(format)")
            }
            #expect(ImageFormat.sniff(image.bytes) == format)
            #expect(try RenditionRenderer.render(bytes, options) == image, "\(format) has the same bytes twice")
        }
    }

    @Test func `transparency is kept if the format supports it and white otherwise`() throws {
        // Hidden pixels are blue: a resize that is not weighted by alpha makes the edge bluish.
        let png = TestImages.png(width: 64, height: 64) { x, _ in x < 32 ? (200, 30, 30, 255) : (0, 0, 255, 0) }
        let options = RenditionOptions(target: .size(width: 16, height: 16), resizeMode: .exact, format: .png)
        let small = try RenditionRenderer.render(png, options)
        #expect(try ImageProbe.info(of: small.bytes).hasAlpha)
        var flat = options
        flat.format = .jpeg
        flat.quality = 100
        let pixels = try TestPixels(RenditionRenderer.render(png, flat).bytes)
        for x in 0..<16 {
            let colour = pixels[x, 8]
            #expect(colour[2] <= colour[0] + 6, "no blue at \(x): \(colour)")
        }
        #expect(pixels[15, 8].allSatisfy { $0 > 245 })
    }

    @Test func `from quality 90 on AVIF keeps the colours of single pixels, as JPEG does`() throws {
        _ = try Needed.found(ImageFormat.avif.canEncode ? true : nil, "an encoder of AVIF")
        let png = TestImages.png(width: 64, height: 64) { x, _ in x % 2 == 0 ? (230, 30, 30, 255) : (30, 30, 230, 255) }
        let whole = try TestPixels(png)
        for format in [ImageFormat.avif, .jpeg] {
            let images = try [85, 90].map { quality in
                try RenditionRenderer.render(png, RenditionOptions(format: format, quality: quality))
            }
            #expect(try TestPixels(images[0].bytes).psnr(whole) < 20, "\(format)")
            #expect(try TestPixels(images[1].bytes).psnr(whole) > 25, "\(format)")
        }
    }

    @Test func `a shared decode gives the same sizes as single renditions`() throws {
        let bytes = TestImages.jpeg(width: 640, height: 480, orientation: 6)
        let options = [
            RenditionOptions(target: .size(width: 64, height: 64), resizeMode: .exact),
            RenditionOptions(target: .size(width: 100, height: 100)),
            RenditionOptions(target: .maximum, format: .png),
            RenditionOptions(target: .size(width: 50, height: 50), contentMode: .aspectFill, resizeMode: .exact),
        ]
        let together = try RenditionRenderer.renderAll(bytes, options)
        let alone = try options.map { try RenditionRenderer.render(bytes, $0) }
        #expect(together.map(\.pixelWidth) == alone.map(\.pixelWidth))
        #expect(together.map(\.pixelHeight) == alone.map(\.pixelHeight))
        #expect(try TestPixels(together[0].bytes).psnr(TestPixels(alone[0].bytes)) > 30)
    }

    @Test func `a much smaller size in a batch is as good as a single rendition`() throws {
        let files = try Needed.photographs(["jpg"])
        let file = try #require(files.first { $0.lastPathComponent == "42_IndexError.jpg" })
        let bytes = SharedPhotos.bytes(file)
        let options = [256, 2048, 512, 1024].map {
            RenditionOptions(target: .size(width: $0, height: $0), resizeMode: .exact, format: .png)
        }
        let together = try RenditionRenderer.renderAll(bytes, options)
        for (image, options) in zip(together, options) {
            let alone = try TestPixels(RenditionRenderer.render(bytes, options).bytes)
            let distance = try TestPixels(image.bytes).psnr(alone)
            #expect(distance > 42, "\(image.pixelWidth) px: \(distance) dB")
        }
    }

    @Test func `invalid options are refused as invalid_options`() {
        let bytes = TestImages.jpeg(width: 16, height: 16)
        let bad: [RenditionOptions] = [
            RenditionOptions(target: .size(width: 0, height: 10)),
            RenditionOptions(target: .size(width: 10, height: -1)),
            RenditionOptions(target: .size(width: 70_000, height: 10)),
            RenditionOptions(target: .size(width: 60_000, height: 60_000), resizeMode: .exact),
            RenditionOptions(quality: 0),
            RenditionOptions(format: .heic),
            RenditionOptions(
                target: .size(width: 9, height: 9),
                resizeMode: .fast,
                crop: UnitRect(x: 0, y: 0, width: 1, height: 1)
            ),
            RenditionOptions(
                target: .size(width: 9, height: 9),
                resizeMode: .exact,
                crop: UnitRect(x: 0.6, y: 0, width: 0.5, height: 1)
            ),
            RenditionOptions(
                target: .size(width: 9, height: 9),
                resizeMode: .exact,
                crop: UnitRect(x: 0, y: 0, width: 0, height: 1)
            ),
        ]
        for options in bad {
            let error = #expect(throws: ImagingError.self) { try RenditionRenderer.render(bytes, options) }
            #expect(error?.name == "invalid_options", "\(options)")
        }
    }
}
