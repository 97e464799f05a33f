import Basics
import Foundation
import JSONValue
import PhotoModel
import Synchronization
import TestSupport
import Testing

@testable import Imaging

/// Tests that rendering a JPEG in bands gives the same image as rendering the whole raster.
@Suite(.timeLimit(.minutes(5)))
struct JPEGBandTranscoderTests {
    private static let lists: [[Adjustment]] = [
        [], [.crop(UnitRect(x: 0.1, y: 0.2, width: 0.61, height: 0.55))], [.rotate(.quarter)],
        [.flip(.vertical), .crop(UnitRect(x: 0.3, y: 0, width: 0.5, height: 1)), .rotate(.threeQuarters)],
        [.exposure(0.4), .contrast(0.2), .sepia(0.5), .crop(UnitRect(x: 0.05, y: 0.05, width: 0.9, height: 0.9))],
    ]

    private func both(
        _ bytes: [UInt8],
        _ operations: [Adjustment],
        maximumSide: Int? = nil
    ) throws -> (TestPixels, TestPixels) {
        let list = AdjustmentList(operations: operations)
        let images = try [true, false].map { usesBands in
            try AdjustmentRendering.render(bytes, list, maximumSide: maximumSide, usesBands: usesBands)
        }
        #expect(images[0].bytes != images[1].bytes, "the image was rendered in bands")
        return (try TestPixels(images[0].bytes), try TestPixels(images[1].bytes))
    }

    @Test(arguments: 1...8)
    func `bands and rasters agree for every orientation`(orientation: Int) throws {
        let bytes = TestImages.jpeg(width: 250, height: 171, orientation: orientation)
        let vignette = [try Adjustment(.vignette, ["value": -0.6]), try Adjustment(.grain, ["value": 0.3])]
        for operations in Self.lists + [vignette] {
            let (bands, whole) = try both(bytes, operations)
            #expect((bands.width, bands.height) == (whole.width, whole.height))
            #expect(bands.psnr(whole) > 45, "\(operations): \(bands.psnr(whole)) dB")
        }
    }

    @Test(arguments: [1, 3, 6])
    func `previews agree for every decode fraction`(orientation: Int) throws {
        let bytes = TestImages.jpeg(width: 640, height: 480, orientation: orientation)
        for side in [40, 100, 200, 400, 600] {
            for operations in Self.lists {
                let (bands, whole) = try both(bytes, operations, maximumSide: side)
                #expect((bands.width, bands.height) == (whole.width, whole.height), "\(operations) at \(side)")
                #expect(bands.psnr(whole) > 34, "\(operations) at \(side): \(bands.psnr(whole)) dB")
            }
        }
    }

    @Test(arguments: [1, 6])
    func `an image that becomes a pixel smaller is scaled, not cropped`(orientation: Int) throws {
        let bytes = TestImages.jpeg(width: 2048, height: 1536, orientation: orientation)
        for operations in [[], [.rotate(.quarter)]] as [[Adjustment]] {
            let smaller = try Adjustment(.resize, ["width": 2047, "height": 2047])
            let (bands, whole) = try both(bytes, operations + [smaller])
            #expect((bands.width, bands.height) == (whole.width, whole.height))
            #expect(bands.psnr(whole) > 34, "\(operations): \(bands.psnr(whole)) dB")
        }
    }

    /// The lists have curves, a matrix, a colour table and ImageMagick's own modulation, and operations that read the
    /// rows around a pixel, in bands of 114, 90 and fewer rows with margins.
    @Test(arguments: [1, 6])
    func `the ImageMagick engine renders the same pixels in bands as in a whole image`(orientation: Int) throws {
        let bytes = TestImages.jpeg(width: 300, height: 600, orientation: orientation)
        let lists: [[Adjustment]] = [
            [.exposure(0.4), .contrast(0.2)], [.saturation(0.4), .exposure(-0.3), .rotate(.quarter)],
            [.vibrance(0.5), .crop(UnitRect(x: 0.05, y: 0.1, width: 0.7, height: 0.8))],
            [try Adjustment(.modulate, ["brightness": 1.1, "saturation": 1.3, "hue": 20]), .flip(.vertical)],
            [try Adjustment(.sharpen, ["amount": 1]), .exposure(0.3)],
            [try Adjustment(.sharpen, ["amount": 2, "radius": 5]), .rotate(.quarter)],
            [
                try Adjustment(.noiseReduction, ["luminance": 0.6, "colour": 1]),
                try Adjustment(.sharpen, ["amount": 3, "radius": 0.5, "threshold": 0.02]), .flip(.vertical),
            ], [try Adjustment(.noiseReduction, ["luminance": 1]), Self.lists[1][0]],
        ]
        for operations in lists + [Self.lists[1], Self.lists[4]] {
            let list = AdjustmentList(operations: operations)
            let images = try [true, false].map { usesBands in
                try AdjustmentRendering.render(bytes, list, quality: 100, engine: .imagemagick, usesBands: usesBands)
                    .bytes
            }
            #expect(images[0] != images[1], "the image was rendered in bands")
            #expect(try TestPixels(images[0]).psnr(TestPixels(images[1])) == .infinity, "\(operations)")
        }
        let limits = { () -> PixelLimits in
            var limits = PixelLimits()
            limits.seconds = 0.0001
            return limits
        }()
        #expect(throws: ImagingError.self) {
            try AdjustmentRendering.render(
                bytes,
                AdjustmentList(operations: lists[2]),
                limits: limits,
                engine: .imagemagick
            )
        }
    }

    /// Each row becomes the sum of those up to two above and below it.
    @Test(arguments: [1, 2, 3, 4, 5, 7, 8, 9, 30], [true, false])
    func `a band has the rows around it, whichever thread changed them`(height: Int, hasThread: Bool) throws {
        let pipe = BandPipeline(height: height, rowBytes: 1, rowsPerBand: 4, margin: 2)
        var result: [UInt8] = []
        try pipe.run(
            fill: { rows in for row in 0..<rows.count { rows.pixels[row] = UInt8(rows.first + row) } },
            change: { rows in
                let before: [UInt8] = (-rows.above..<rows.count + rows.below).map { rows.pixels[$0] }
                for row in 0..<rows.count {
                    let middle = row + rows.above
                    let around: ClosedRange<Int> = max(0, middle - 2)...min(before.count - 1, middle + 2)
                    rows.pixels[row] = before[around].reduce(0, +)
                }
            },
            empty: { rows in for row in 0..<rows.count { result.append(rows.pixels[row]) } },
            start: { hasThread && DetachedThread.start($0) }
        )
        for row in 0..<height {
            let rows: ClosedRange<Int> = max(0, row - 2)...min(height - 1, row + 2)
            #expect(Int(result[row]) == rows.reduce(0, +), "row \(row)")
        }
    }

    @Test func `each row is processed once, although no thread can be started`() {
        let counts = Mutex([Int](repeating: 0, count: 1000))
        RowBands.run(
            1000,
            pixels: 1_000_000,
            { first, rows in counts.withLock { for row in first..<(first + rows) { $0[row] += 1 } } },
            start: { _ in false }
        )
        #expect(counts.withLock { $0 } == [Int](repeating: 1, count: 1000))
    }

    /// The stages that begin on one thread.
    private final class Stages: Sendable {
        let seen = Mutex<[ImagingStage]>([])
    }

    @Test func `the stage is working while operations run, and reading otherwise`() throws {
        let bytes = TestImages.jpeg(width: 64, height: 48)
        let thread = pthread_self()
        for operations in [[], [.exposure(0.4)]] as [[Adjustment]] {
            let stages = Stages()
            ImagingLibrary.observeStages { stage in
                // Other tests render at the same time.
                if pthread_equal(pthread_self(), thread) != 0 { stages.seen.withLock { $0.append(stage) } }
            }
            defer { ImagingLibrary.observeStages { _ in } }
            _ = try AdjustmentRendering.render(bytes, AdjustmentList(operations: operations))
            let seen = stages.seen.withLock { $0 }
            #expect(seen.contains(.working) == !operations.isEmpty)
            #expect(seen.last == .reading)
        }
    }

    @Test func `the result is the same every time, whatever the number of threads`() throws {
        let bytes = TestImages.jpeg(width: 700, height: 530)
        let list = AdjustmentList(operations: Self.lists[4])
        let first = try AdjustmentRendering.render(bytes, list).bytes
        for _ in 0..<8 { #expect(try AdjustmentRendering.render(bytes, list).bytes == first) }
    }

    @Test func `a truncated file is an error, a damaged one is edited as it is shown, and no thread keeps waiting`()
        throws
    {
        let bytes = TestImages.jpeg(width: 400, height: 300)
        for length in stride(from: 700, to: bytes.count - 2, by: 997) {
            let cut = Array(bytes.prefix(length))
            let error = #expect(throws: ImagingError.self) { try AdjustmentRendering.render(cut, AdjustmentList()) }
            #expect(error == .truncated, "cut at \(length)")
            // The end marker is present, but data before it is missing.
            let image = try AdjustmentRendering.render(cut + [0xFF, 0xD9], AdjustmentList())
            #expect((image.pixelWidth, image.pixelHeight) == (400, 300), "cut at \(length)")
        }
        var random = SeededRandom(named: "damaged JPEG")
        for _ in 0..<40 {
            var damaged = bytes
            for _ in 0..<4 { damaged[Int.random(in: 20..<damaged.count, using: &random)] = UInt8(random.next() & 255) }
            _ = try? AdjustmentRendering.render(damaged, AdjustmentList(operations: [.exposure(1)]))
        }
    }
}
