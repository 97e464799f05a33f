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
        #expect((sheet.pixelWidth, sheet.pixelHeight) == (8 + 3 * 72, 8 + 2 * 84))
        let pixels = try TestPixels(sheet.bytes)
        // The first image is fitted to 64 by 43 and centred in its cell.
        #expect(Quadrant(pixels[8 + 10, 8 + 20]) == .red)
        #expect(Quadrant(pixels[8 + 54, 8 + 44]) == .yellow)
        #expect(pixels[8 + 32, 8 + 2] == [0x30, 0x30, 0x30])
        #expect(pixels[80, 8] == [0x70, 0x70, 0x70])
        // The fourth image is not enlarged.
        #expect(Quadrant(pixels[8 + 24, 92 + 24]) == .red)
        #expect(pixels[8 + 20, 92 + 32] == [0x30, 0x30, 0x30])
        #expect(
            (0..<64).contains { x in (0..<12).contains { pixels[8 + x, 72 + $0] == [0xE0, 0xE0, 0xE0] } },
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
}
