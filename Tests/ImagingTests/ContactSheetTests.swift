import Imaging
import ImageFormats
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(5)))
struct ContactSheetTests {
    @Test func `images are drawn in their cells, and broken ones become placeholders`() throws {
        let cells = [
            ContactSheet.Cell(bytes: TestImages.jpeg(width: 120, height: 80, orientation: 6), label: "one.jpg"),
            ContactSheet.Cell(bytes: nil, label: "Göteborg"),
            ContactSheet.Cell(bytes: [1, 2, 3], label: String(repeating: "long ", count: 40)),
            ContactSheet.Cell(bytes: TestImages.jpeg(width: 20, height: 20), label: "日本"),
        ]
        let sheet = try ContactSheet.render(cells, columns: 3, cellSide: 64, format: .png)
        #expect((sheet.pixelWidth, sheet.pixelHeight) == (8 + 3 * 72, 8 + 2 * 90))
        let pixels = try TestPixels(sheet.bytes)
        // The first image is fitted to 64 by 43 and centred in its cell.
        #expect(Quadrant(pixels[8 + 10, 8 + 20]) == .red)
        #expect(Quadrant(pixels[8 + 54, 8 + 44]) == .yellow)
        #expect(pixels[8 + 32, 8 + 2] == [0x30, 0x30, 0x30])
        #expect(pixels[80, 8] == [0x70, 0x70, 0x70])
        // The fourth image is not enlarged.
        #expect(Quadrant(pixels[8 + 24, 98 + 24]) == .red)
        #expect(pixels[8 + 20, 98 + 32] == [0x30, 0x30, 0x30])
        #expect(
            (0..<64).contains { x in (0..<18).contains { pixels[8 + x, 72 + $0][0] > 0xA0 } },
            "a label"
        )
    }

    @Test func `the size of a sheet is limited`() {
        let cell = ContactSheet.Cell(bytes: nil, label: "")
        for (count, columns, side) in [(0, 1, 64), (1, 0, 64), (1, 1, 4), (2001, 5, 64), (1, 1, 5000), (1, 101, 64)] {
            let error = #expect(throws: ImagingError.self) {
                try ContactSheet.render(Array(repeating: cell, count: count), columns: columns, cellSide: side)
            }
            #expect(error?.name == "invalid_options")
        }
        let error = #expect(throws: ImagingError.self) {
            try ContactSheet.render(Array(repeating: cell, count: 2000), columns: 40, cellSide: 2048)
        }
        #expect(error?.name == "limit_exceeded")
    }

    @Test func `justified rows are filled from edge to edge with the shapes of their images`() throws {
        let shapes = [(300, 200), (200, 300), (400, 100), (300, 200), (100, 100), (300, 200), (20, 20)]
        let cells = shapes.map { width, height in
            ContactSheet.Cell(bytes: TestImages.jpeg(width: width, height: height), label: "")
        }
        let sheet = try ContactSheet.render(cells, columns: 4, cellSide: 100, layout: .justified, format: .png)
        #expect(sheet.pixelWidth == 8 + 4 * 108)
        let pixels = try TestPixels(sheet.bytes)
        func isBackground(_ x: Int, _ y: Int) -> Bool { pixels[x, y] == [0x30, 0x30, 0x30] }
        // 3:2, 2:3 and 4:1 fill the first row: 408 wide without the gaps, so 66 high.
        let (free, ratios) = (424.0 - 2 * 8, 1.5 + 2.0 / 3 + 4)
        let height = Int(free / ratios)
        #expect(!isBackground(8, 8 + height / 2) && !isBackground(8 + 424 - 1, 8 + height / 2))
        #expect(!isBackground(8 + 20, 8) && !isBackground(8 + 20, 8 + height - 1))
        #expect(isBackground(8 + 20, 8 + height + 2))
        let gap = 8 + Int((1.5 * free / ratios).rounded())
        #expect(isBackground(gap + 3, 8 + height / 2), "between two images")
        // The next row begins below the labels, and is filled too; its last image is small and keeps its size.
        let second = 8 + height + 18 + 8
        #expect(!isBackground(8, second + 20) && !isBackground(8 + 424 - 50 - 8 - 1, second + 20))
        // No image is enlarged.
        #expect(sheet.pixelHeight <= second + 100 + 18 + 8)
        let single = try ContactSheet.render([cells[6]], columns: 4, cellSide: 100, layout: .justified, format: .png)
        let small = try TestPixels(single.bytes)
        #expect(single.pixelWidth == 116 && small[8 + 12, 8 + 50] == [0x30, 0x30, 0x30])
        #expect(Quadrant(small[8 + 19, 8 + 44]) == .red)
    }

    @Test func `in justified rows a small image that is wider than the sheet is scaled down`() throws {
        let cell = ContactSheet.Cell(bytes: TestImages.jpeg(width: 300, height: 200), label: "")
        let sheet = try ContactSheet.render([cell], columns: 4, cellSide: 256, layout: .justified, format: .png)
        // 256 by 170 pixels between the gaps, and the height of the label.
        #expect((sheet.pixelWidth, sheet.pixelHeight) == (8 + 264, 8 + 170 + 18 + 8))
        let pixels = try TestPixels(sheet.bytes)
        #expect(Quadrant(pixels[8 + 20, 8 + 20]) == .red && Quadrant(pixels[8 + 235, 8 + 150]) == .yellow)
    }
}
