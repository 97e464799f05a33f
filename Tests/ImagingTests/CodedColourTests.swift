import Foundation
import ImageFormats
@testable import Imaging
import TestSupport
import Testing

/// Tests of colour spaces that files specify by numbers, compared with the formulas of their standards.
@Suite(.timeLimit(.minutes(2)))
struct CodedColourTests {
    typealias Chunk = (name: String, content: [UInt8])

    private func rendered(_ bytes: [UInt8]) throws -> [Int] {
        let image = try RenditionRenderer.render(bytes, RenditionOptions(format: .png)).bytes
        #expect(
            [nil, .sRGB].contains(try ImageHeader.read(image).codedColours),
            "the image is in sRGB, and declares it"
        )
        return try TestPixels(image)[8, 8]
    }

    private func rendered(_ chunks: [Chunk], _ colour: (UInt8, UInt8, UInt8) = (200, 100, 50)) throws -> [Int] {
        try rendered(
            TestImages.png(width: 16, height: 16, chunks: chunks) { _, _ in (colour.0, colour.1, colour.2, 255) }
        )
    }

    private func expect(
        _ colour: [Int],
        _ expected: [Double],
        within tolerance: Double = 1.5,
        _ location: SourceLocation = #_sourceLocation
    ) {
        for (found, expected) in zip(colour, expected) {
            #expect(abs(Double(found) - expected) <= tolerance, "\(colour), not \(expected)", sourceLocation: location)
        }
    }

    private func words(_ values: [Double]) -> [UInt8] {
        values.flatMap { value in
            (0..<4).map { UInt8(truncatingIfNeeded: Int((value * 100_000).rounded()) >> (24 - 8 * $0)) }
        }
    }

    private func gamma(_ value: Double) -> Chunk { ("gAMA", words([value])) }

    private static let white = [0.3127, 0.329]
    private static let p3 = white + [0.68, 0.32, 0.265, 0.69, 0.15, 0.06]

    // MARK: Formulas

    /// Returns the sRGB value (IEC 61966-2-1), 0...255, of linear light.
    private func encoded(_ light: Double) -> Double {
        let light = min(max(light, 0), 1)
        return 255 * (light <= 0.003_130_8 ? 12.92 * light : 1.055 * pow(light, 1 / 2.4) - 0.055)
    }

    private func light(_ value: UInt8) -> Double {
        let value = Double(value) / 255
        return value <= 0.040_45 ? value / 12.92 : pow((value + 0.055) / 1.055, 2.4)
    }

    /// Converts linear light from BT.2020 to BT.709 (ITU-R BT.2407).
    private func narrowed(_ light: [Double]) -> [Double] {
        [[1.6605, -0.5876, -0.0728], [-0.1246, 1.1329, -0.0083], [-0.0182, -0.1006, 1.1187]].map { row in
            zip(row, light).map(*).reduce(0, +)
        }
    }

    /// Returns the luminance of a value of PQ, 0...1, in cd/m² (ITU-R BT.2100, table 4).
    private func luminance(_ value: Double) -> Double {
        let power = pow(value, 1 / 78.84375)
        return 10_000 * pow(max(power - 0.8359375, 0) / (18.8515625 - 18.6875 * power), 1 / 0.1593017578125)
    }

    // MARK: PNG

    @Test func `a PNG is converted by its gamma, unless it is the gamma of sRGB or invalid`() throws {
        for power in [1, 1.8, 2.5] {
            let expected = [200.0, 100, 50].map { encoded(pow($0 / 255, power)) }
            expect(try rendered([gamma(1 / power)]), expected)
        }
        for value in [0.45455, 0.45, 0, 20_000] { #expect(try rendered([gamma(value)]) == [200, 100, 50]) }
    }

    @Test func `a grey PNG is converted by its gamma`() throws {
        let convert = try Needed.program("convert")
        for bits in ["8", "16"] {
            let png = [UInt8](
                try ExternalTool.run(
                    convert,
                    ["-size", "16x16", "xc:gray(100)", "-depth", bits, "-define", "png:exclude-chunks=all", "png:-"]
                )
            )
            let header = 33
            let chunk = TestImages.chunk("gAMA", words([1]))
            expect(try rendered(Array(png.prefix(header)) + chunk + png.dropFirst(header)), [encoded(100.0 / 255)])
        }
    }

    @Test func `the primaries of a PNG are converted, with its gamma or that of sRGB`() throws {
        for chunks in [[("cHRM", words(Self.p3))], [gamma(0.45455), ("cHRM", words(Self.p3))]] {
            expect(try rendered(chunks), [215, 93, 31])
        }
        let bt709 = Self.white + [0.64, 0.33, 0.3, 0.6, 0.15, 0.06]
        #expect(try rendered([gamma(0.45455), ("cHRM", words(bt709))]) == [200, 100, 50])
    }

    @Test func `sRGB and profiles take precedence over gamma and primaries, in either order`() throws {
        let profile: Chunk = ("iCCP", Array("x".utf8) + [0, 0] + TestImages.stored(ColourProfile.sRGB))
        for other: Chunk in [("sRGB", [0]), profile] {
            #expect(try rendered([gamma(1), ("cHRM", words(Self.p3)), other]) == [200, 100, 50])
            #expect(try rendered([other, gamma(1), ("cHRM", words(Self.p3))]) == [200, 100, 50])
        }
    }

    @Test func `primaries that do not define three colours are ignored`() throws {
        for primaries in [
            Self.white + [0.3, 0.3, 0.3, 0.3, 0.3, 0.3], Self.white + [0.64, 0, 0.3, 0.6, 0.15, 0.06],
            Array(repeating: 0, count: 8), [0.3, 0.3],
        ] {
            #expect(try rendered([("cHRM", words(primaries))]) == [200, 100, 50], "\(primaries)")
        }
    }

    @Test func `BT.2020 in standard range is converted`() throws {
        let expected = narrowed([200, 100, 50].map(light)).map(encoded)
        expect(try rendered([("cICP", [9, 14, 0, 1])]), expected)
        expect(try rendered(avif(primaries: 9, transfer: 13)), expected, within: 4)
    }

    // MARK: High dynamic range

    /// Greys: in PQ 49 cd/m², which the curve does not change; in HLG half of the signal; in both the maximum.
    private static let greys: [(transfer: UInt8, value: UInt8)] = [(16, 112), (16, 255), (18, 128), (18, 255)]

    private func expected(_ grey: (transfer: UInt8, value: UInt8)) -> Double {
        guard grey.value < 255 else { return 255 }
        let value = Double(grey.value) / 255
        if grey.transfer == 16 { return encoded(luminance(value) / 203) }
        let scene = (exp((value - 0.55991073) / 0.17883277) + 0.28466892) / 12
        return encoded(1000 * pow(scene, 1.2) / 203)
    }

    @Test func `PQ and HLG are mapped to standard range in PNG, AVIF and JPEG XL`() throws {
        for grey in Self.greys {
            let expected = Array(repeating: expected(grey), count: 3)
            let colour = (grey.value, grey.value, grey.value)
            expect(try rendered([("cICP", [9, grey.transfer, 0, 1])], colour), expected)
            expect(try rendered(avif(colour, primaries: 9, transfer: grey.transfer)), expected, within: 3)
            let space = "RGB_D65_202_Rel_" + (grey.transfer == 16 ? "PeQ" : "HLG")
            let pixels = [UInt8](repeating: grey.value, count: 16 * 16 * 3)
            let jxl = try TestJXL.encoded(
                Array("P6 16 16 255\n".utf8) + pixels,
                fileExtension: "ppm",
                ["-d", "0", "-x", "color_space=\(space)"]
            )
            expect(try rendered(Needed.found(jxl, "cjxl of libjxl-tools")), expected)
        }
    }

    @Test func `a grey AVIF in limited range has black and white`() throws {
        let ffmpeg = try Needed.program("ffmpeg")
        for (range, values) in [("tv", [16, 126, 235]), ("pc", [0, 128, 255])] {
            let folder = try TemporaryFolder("grey")
            for (value, expected) in zip(values, [0.0, 128, 255]) {
                let file = folder.file("\(value).avif")
                let source = "color=c=black:s=64x64,format=gray,geq=lum=\(value)"
                _ = try ExternalTool.run(
                    ffmpeg,
                    ["-v", "error", "-y", "-f", "lavfi", "-i", source, "-frames:v", "1", "-color_range", range]
                        + ["-c:v", "libaom-av1", "-still-picture", "1", "-crf", "10", file]
                )
                let bytes = [UInt8](try Data(contentsOf: URL(filePath: file)))
                expect(try rendered(bytes), [expected, expected, expected], within: 3)
            }
        }
    }

    @Test func `red in the primaries of P3 becomes a brighter red than that of BT.709`() throws {
        let red: (UInt8, UInt8, UInt8) = (112, 64, 64)
        let bt709 = try rendered([("cICP", [1, 16, 0, 1])], red)
        let p3 = try rendered([("cICP", [12, 16, 0, 1])], red)
        #expect(p3[0] > bt709[0] + 2 && p3[1] < bt709[1], "\(bt709), \(p3)")
    }

    @Test func `an AVIF of ten bits is not reduced to eight before the mapping`() throws {
        let codes = (0..<256).map { UInt16(300 + $0 / 2) }
        let samples = HDRRendering.Samples(
            values: (0..<64).flatMap { _ in codes.flatMap { [$0, $0, $0] } },
            width: 256,
            height: 64
        )
        let avif = try AvifEncoder.encode(samples, quality: 100)
        let pixels = try TestPixels(RenditionRenderer.render(avif, RenditionOptions(format: .png)).bytes)
        let greys = Set((0..<256).map { pixels[$0, 32][1] })
        // Eight bits would leave 32 steps of these 128.
        #expect(greys.count > 50, "\(greys.count) greys")
        for x in stride(from: 8, to: 256, by: 31) {
            expect(pixels[x, 32], [encoded(luminance(Double(codes[x]) / 1023) / 203)], within: 2)
        }
    }

    /// 16 by 16 pixels of one grey in PQ, of 10 bits. The opacity has 8 bits: 255 on the left, 128 on the right.
    private static let unequalDepths = [
        // 4:4:4
        """
        AAAAFGZ0eXBhdmlmAAAAAG1pZjEAAAFcbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAAAAAAAOcGl0bQAAAAAAAQAA
        ACxpbG9jAAAAAEQAAAIAAQAAAAEAAAF4AAAAGQACAAAAAQAAAZEAAAAWAAAAOGlpbmYAAAAAAAIAAAAVaW5mZQIAAAAAAQAAYXYwMQAAAAAV
        aW5mZQIAAAAAAgAAYXYwMQAAAAAaaXJlZgAAAAAAAAAOYXV4bAACAAEAAQAAAKNpcHJwAAAAf2lwY28AAAAUaXNwZQAAAAAAAAAQAAAAEAAA
        AAxhdjFDgSBAAAAAABNjb2xybmNseAAJABAACYAAAAAMYXYxQ4EAHAAAAAA4YXV4QwAAAAB1cm46bXBlZzptcGVnQjpjaWNwOnN5c3RlbXM6
        YXV4aWxpYXJ5OmFscGhhAAAAABxpcG1hAAAAAAAAAAIAAQMBggMAAgMBhAUAAAA3bWRhdAoIOAz/28JEAmQyDRFAAABAAAAAAD7zMWAKBRgM
        /9tUMg1EUAAAQAEAjKqoVSuX
        """,
        // 4:0:0
        """
        AAAAFGZ0eXBhdmlmAAAAAG1pZjEAAAFcbWV0YQAAAAAAAAAhaGRscgAAAAAAAAAAcGljdAAAAAAAAAAAAAAAAAAAAAAOcGl0bQAAAAAAAQAA
        ACxpbG9jAAAAAEQAAAIAAQAAAAEAAAF4AAAAFwACAAAAAQAAAY8AAAAWAAAAOGlpbmYAAAAAAAIAAAAVaW5mZQIAAAAAAQAAYXYwMQAAAAAV
        aW5mZQIAAAAAAgAAYXYwMQAAAAAaaXJlZgAAAAAAAAAOYXV4bAACAAEAAQAAAKNpcHJwAAAAf2lwY28AAAAUaXNwZQAAAAAAAAAQAAAAEAAA
        AAxhdjFDgQBcAAAAABNjb2xybmNseAAJABAACYAAAAAMYXYxQ4EAHAAAAAA4YXV4QwAAAAB1cm46bXBlZzptcGVnQjpjaWNwOnN5c3RlbXM6
        YXV4aWxpYXJ5OmFscGhhAAAAABxpcG1hAAAAAAAAAAIAAQMBggMAAgMBhAUAAAA1bWRhdAoIGAz/2+EiATQyCxFAAAEAAADApNeACgUYDP/b
        VDINRFAAAEABAIyqqFUrlw==
        """,
    ]

    @Test(arguments: unequalDepths)
    func `an AVIF of ten bits is shown with an opacity of eight`(_ file: String) throws {
        let data = try #require(Data(base64Encoded: file, options: .ignoreUnknownCharacters))
        let pixels = try TestPixels(RenditionRenderer.render([UInt8](data), RenditionOptions(format: .png)).bytes)
        let grey = expected((16, 112))
        // It covers half of the test's background, which is the grey 48.
        let mixed = (grey * 128 + 48 * 127) / 255
        expect(pixels[3, 8], [grey, grey, grey], within: 3)
        expect(pixels[12, 8], [mixed, mixed, mixed], within: 3)
    }

    /// Returns an AVIF of one colour whose numbers do not declare sRGB.
    private func avif(
        _ colour: (UInt8, UInt8, UInt8) = (200, 100, 50),
        primaries: UInt8,
        transfer: UInt8
    ) throws -> [UInt8] {
        let png = TestImages.png(width: 16, height: 16) { _, _ in (colour.0, colour.1, colour.2, 255) }
        var bytes = try RenditionRenderer.render(png, RenditionOptions(format: .avif, quality: 100)).bytes
        let box = try #require(Data(bytes).range(of: Data("nclx".utf8)))
        bytes.replaceSubrange(box.upperBound..<box.upperBound + 4, with: [0, primaries, 0, transfer])
        return bytes
    }
}
