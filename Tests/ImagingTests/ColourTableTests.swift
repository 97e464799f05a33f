import Foundation
import ImageFormats
import JSONValue
import PhotoModel
import TestSupport
import Testing

@testable import Imaging

/// Tests of the operation `lut`, with .cube files and HALD CLUTs.
@Suite(.timeLimit(.minutes(5)))
struct ColourTableTests {
    typealias Colour = (Double, Double, Double)

    /// Returns a .cube file of a function of colours.
    private func cube(_ points: Int, header: String = "", _ body: (Colour) -> Colour) -> [UInt8] {
        var text = "# made by a test\r\nTITLE \"test\"\r\n\(header)LUT_3D_SIZE \(points)\r\n"
        let last = Double(points - 1)
        for index in 0..<points * points * points {
            let (r, g, b) = (index % points, index / points % points, index / (points * points))
            let (x, y, z) = body((Double(r) / last, Double(g) / last, Double(b) / last))
            text += "\(x) \(y)\t\(z)\r\n"
        }
        return Array(text.utf8)
    }

    private func lut(_ file: [UInt8], _ value: Double = 1) throws -> Adjustment {
        try Adjustment(.lut, ["value": .double(value), "table": .string(Data(file).base64EncodedString())])
    }

    private let source = EngineFixtures.image(seed: 9)

    /// Renders with both engines, and checks that each equals a formula.
    private func check(
        _ operation: Adjustment,
        minimum: Double,
        _ formula: (Colour) -> Colour,
        line: SourceLocation = #_sourceLocation
    ) throws {
        let whole = try TestPixels(source)
        let expected = whole.mapped { c in
            let (r, g, b) = formula((c[0], c[1], c[2]))
            return [r, g, b]
        }
        for engine in RenderEngine.allCases {
            let image = try AdjustmentRendering.render(
                source,
                AdjustmentList(operations: [operation]),
                format: .tiff,
                engine: engine
            )
            let distance = try TestPixels(image.bytes).psnr(expected)
            #expect(distance >= minimum, "\(engine): \(distance) dB", sourceLocation: line)
        }
    }

    @Test func `an identity table changes nothing, and other tables equal their formulas`() throws {
        for points in [2, 17, 33, 65] {
            try check(lut(ColourTable(cube: cube(points) { $0 }).png), minimum: 58) { $0 }
        }
        // A linear mixture is exact between the points too.
        let mix: (Colour) -> Colour = { (0.1 + 0.6 * $0.0 + 0.2 * $0.1, 0.9 * $0.1, 0.3 * $0.0 + 0.6 * $0.2) }
        try check(lut(cube(5, mix)), minimum: 50, mix)
        try check(lut(cube(5, mix), 0.5), minimum: 50) { c in
            let m = mix(c)
            return ((c.0 + m.0) / 2, (c.1 + m.1) / 2, (c.2 + m.2) / 2)
        }
        let film: (Colour) -> Colour = { (pow($0.0, 0.8), $0.1 * $0.1, 1 - (1 - $0.2) * (1 - 0.3 * $0.0)) }
        try check(lut(ColourTable(cube: cube(65, film)).png), minimum: 45, film)
    }

    @Test func `one-dimensional tables and domains are applied`() throws {
        var text = "LUT_1D_SIZE 256\nDOMAIN_MIN 0 0 0\nDOMAIN_MAX 1 1 1\n"
        for index in 0..<256 {
            let v = Double(index) / 255
            text += "\(v * v) \(1 - v) \(v)\n"
        }
        try check(lut(Array(text.utf8)), minimum: 55) { ($0.0 * $0.0, 1 - $0.1, $0.2) }
        try check(lut(ColourTable(cube: Array(text.utf8)).png), minimum: 55) { ($0.0 * $0.0, 1 - $0.1, $0.2) }
        // The domain is 0...2, so half of the points are for 0...1.
        let wide = cube(33, header: "DOMAIN_MIN 0 0 0\r\nDOMAIN_MAX 2 2 2\r\n") { c in
            (2 * c.0 * 0.5, c.1, 2 * c.2 * 0.7)
        }
        try check(lut(wide), minimum: 50) { ($0.0 * 0.5, $0.1 * 0.5, $0.2 * 0.7) }
    }

    @Test func `a HALD CLUT of convert has the same result as in convert`() throws {
        let convert = try Needed.program("convert")
        let folder = try TemporaryFolder("hald")
        for (level, arguments) in [
            (8, []), (8, ["-negate"]), (4, ["-modulate", "100,140,110"]), (12, ["-depth", "8"]),
        ] {
            let (table, input, output) = (folder.file("hald.png"), folder.file("in.png"), folder.file("out.png"))
            _ = try ExternalTool.run(convert, ["hald:\(level)"] + arguments + [table])
            try Data(source).write(to: URL(filePath: input))
            _ = try ExternalTool.run(convert, [input, table, "-hald-clut", "-depth", "16", output])
            let theirs = try DeepPixels([UInt8](Data(contentsOf: URL(filePath: output))))
            let operation = try lut([UInt8](Data(contentsOf: URL(filePath: table))))
            for engine in RenderEngine.allCases {
                let distance = try EngineTests.render(source, [operation], engine).psnr(theirs)
                #expect(distance > 45, "\(level) \(arguments) \(engine): \(distance) dB")
            }
        }
    }

    @Test func `a written table is read back unchanged`() throws {
        for points in [2, 9, 16, 33] {
            let table = try ColourTable(cube: cube(points) { ($0.1, $0.2 * 0.3, 1 - $0.0) })
            #expect(try ColourTable(cube: table.cube(title: "x")) == table)
            #expect(try ColourTable.read(Data(table.png).base64EncodedString()) == table)
        }
    }

    @Test func `broken tables are refused with the reason`() throws {
        let good = "LUT_3D_SIZE 2\n" + String(repeating: "0 0 0\n", count: 8)
        #expect(throws: Never.self) { try ColourTable(cube: Array(good.utf8)) }
        #expect(throws: Never.self) { try ColourTable(cube: [0xEF, 0xBB, 0xBF] + Array(good.utf8)) }
        let broken: [(String, Int?)] = [
            ("", nil), ("LUT_3D_SIZE 2\n0 0 0\n", nil), (good + "0 0 0\n", 10), ("LUT_3D_SIZE 1\n", 1),
            ("LUT_3D_SIZE 200\n", 1), ("LUT_3D_SIZE\n", 1), ("LUT_1D_SIZE 99999999999999999999\n", 1),
            ("0 0 0\nLUT_3D_SIZE 2\n", 1), ("LUT_3D_SIZE 2\nLUT_1D_SIZE 2\n", 2), ("LUT_3D_SIZE 2\n0 0\n", 2),
            ("LUT_3D_SIZE 2\nnan 0 0\n", 2), ("LUT_3D_SIZE 2\n0 inf 0\n", 2), ("LUT_3D_SIZE 2\nred 0 0\n", 2),
            ("DOMAIN_MIN 0 0\n" + good, 1), ("DOMAIN_MIN 1 1 1\nDOMAIN_MAX 0 0 0\n" + good, nil),
            (String(repeating: "x", count: 5000), 1),
        ]
        for (text, line) in broken {
            let error = #expect(throws: ColourTableError.self, "\(text.prefix(40))") {
                try ColourTable(cube: Array(text.utf8))
            }
            #expect(error?.line == line, "\(text.prefix(40)): \(error?.description ?? "")")
        }
        let tables: [[UInt8]] = [
            Array("hello".utf8), Array(TestImages.png(width: 7, height: 5) { _, _ in (0, 0, 0, 255) }.prefix(60)),
            TestImages.png(width: 7, height: 5) { _, _ in (0, 0, 0, 255) }, TestImages.jpeg(width: 8, height: 8),
            TestImages.largeBlackPNG(side: 4000),
        ]
        for table in tables {
            for engine in RenderEngine.allCases {
                let error = #expect(throws: ImagingError.self) {
                    try AdjustmentRendering.render(source, AdjustmentList(operations: [lut(table)]), engine: engine)
                }
                #expect(error?.name == "invalid_options", "\(error?.message ?? "")")
            }
        }
        #expect(throws: AdjustmentError.self) { try Adjustment(.lut, ["table": "not Base64!"]) }
    }
}
