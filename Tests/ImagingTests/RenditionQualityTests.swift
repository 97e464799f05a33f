import Foundation
import Imaging
import ImageFormats
import PhotoModel
import TestSupport
import Testing

/// Compares renditions with those of libvips, which peers use.
@Suite(.timeLimit(.minutes(5)))
struct RenditionQualityTests {
    /// The distances of scaled images from a reference made of every source pixel.
    private struct Comparison: CustomStringConvertible {
        let ours: Double
        /// The distance of `vipsthumbnail`, which shrinks while loading as well.
        let theirs: Double

        /// True if it is within one decibel.
        var isAsGood: Bool { ours > theirs - 1 }
        var description: String { String(format: "%.1f dB, vipsthumbnail %.1f dB", ours, theirs) }
    }

    /// Writes an image to `source.jpg` and its pixels, upright, to `large.v`.
    private func write(_ bytes: [UInt8], to folder: URL) throws {
        let vips = try Needed.program("vips")
        let source = folder.appending(path: "source.jpg")
        let upright = folder.appending(path: "upright.v")
        try Data(bytes).write(to: source)
        _ = try ExternalTool.run(vips, ["autorot", source.path, upright.path])
        // In floating point, because eight bits between the steps would add libvips's own rounding to the reference.
        _ = try ExternalTool.run(vips, ["cast", upright.path, folder.appending(path: "large.v").path, "float"])
    }

    /// Compares at one size, after ``write(_:to:)``. Returns nil if vips rounds the other side of the image
    /// differently.
    private func compare(_ bytes: [UInt8], side: Int, in folder: URL) throws -> Comparison? {
        let (vips, thumbnail) = (try Needed.program("vips"), try Needed.program("vipsthumbnail"))
        let options = RenditionOptions(target: .size(width: side, height: side), resizeMode: .exact, format: .tiff)
        let ours = try TestPixels(RenditionRenderer.render(bytes, options).bytes)
        let info = try ImageProbe.info(of: bytes)
        let source = folder.appending(path: "source.jpg")
        let large = folder.appending(path: "large.v")
        let small = folder.appending(path: "small.v")
        let whole = folder.appending(path: "whole.v")
        let reference = folder.appending(path: "reference.tif")
        let theirs = folder.appending(path: "theirs.tif")
        // A gap of 0 disables shrinking before the filter: Lanczos from every pixel.
        _ = try ExternalTool.run(
            vips,
            [
                "resize", large.path, small.path, "\(Double(ours.width) / Double(info.pixelWidth))",
                "--vscale", "\(Double(ours.height) / Double(info.pixelHeight))", "--kernel", "lanczos3", "--gap", "0",
            ]
        )
        _ = try ExternalTool.run(vips, ["round", small.path, whole.path, "rint"])
        _ = try ExternalTool.run(vips, ["cast", whole.path, reference.path + "[strip]", "uchar"])
        _ = try ExternalTool.run(thumbnail, [source.path, "--size", "\(side)x\(side)", "-o", theirs.path + "[strip]"])
        let exact = try TestPixels(Array(Data(contentsOf: reference)))
        let vipsPixels = try TestPixels(Array(Data(contentsOf: theirs)))
        guard (vipsPixels.width, vipsPixels.height) == (ours.width, ours.height) else { return nil }
        return Comparison(ours: ours.psnr(exact), theirs: vipsPixels.psnr(exact))
    }

    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "safelight-quality-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    @Test func `a rendition of a generated image is as good as that of libvips`() throws {
        let bytes = TestImages.jpeg(width: 960, height: 640) { x, y in
            let ring = sin(Double(x * x + y * y) / 30_000) + 0.5 * sin(Double(x) / 3)
            return (UInt8(128 + 80 * ring), UInt8(x / 4), UInt8(y / 3))
        }
        try withFolder { folder in
            try write(bytes, to: folder)
            for side in [96, 240, 300] {
                let result = try #require(try compare(bytes, side: side, in: folder))
                #expect(result.isAsGood, "\(side) px: \(result)")
            }
        }
    }

    /// Photographs of phones and cameras in sRGB, 2 to 12 megapixels, whose sides divide well.
    private static let photos = [
        "HMD_Nokia_8.3_5G.jpg", "iphone_hdr_YES.jpg", "canon_hdr_NO.jpg", "jolla.jpg", "36-memory_error.jpg",
        "42_IndexError.jpg", "28-hex_value.jpg", "Landscape_1.jpg", "Portrait_6.jpg",
    ]

    @Test(arguments: photos)
    func `renditions of photographs are as good as those of libvips`(name: String) throws {
        let file = try #require(try Needed.photographs(["jpg"]).first { $0.lastPathComponent == name })
        let bytes = SharedPhotos.bytes(file)
        try withFolder { folder in
            try write(bytes, to: folder)
            // Each photo is compared at one of the sizes; the long form has all three.
            let sides = [256, 512, 1024]
            let own = sides[(Self.photos.firstIndex(of: name) ?? 0) % sides.count]
            let compared = TestEnvironment.rounds(1) > 1 ? sides : [own]
            let results = try compared.map { try compare(bytes, side: $0, in: folder) }
            print("note: \(name): \(results.map { $0.map(\.description) ?? "rounded differently" })")
            #expect(results.allSatisfy { $0?.isAsGood != false }, "\(name): \(results)")
            #expect(2 * results.count(where: { $0 != nil }) > compared.count, "\(name): rounded differently")
        }
    }
}
