import Foundation
import Imaging
import TestSupport
import Testing

/// Renditions against libvips, which is what peers use.
@Suite(.timeLimit(.minutes(3)))
struct RenditionQualityTests {
    /// How far a small picture is from the one that libvips makes of all pixels, without shrinking while loading.
    private struct Comparison {
        let ours: Double
        let theirs: Double

        /// Within a decibel of libvips; above 43 dB nobody can see a difference.
        var isAsGood: Bool { ours > min(theirs, 44) - 1 }
    }

    private func compare(_ bytes: [UInt8], side: Int, in folder: URL) throws -> Comparison? {
        guard let vips = Tool.path("vips"), let thumbnail = Tool.path("vipsthumbnail") else { return nil }
        let source = folder.appending(path: "source.jpg")
        let large = folder.appending(path: "large.png")
        let reference = folder.appending(path: "reference.png")
        let theirs = folder.appending(path: "theirs.png")
        try Data(bytes).write(to: source)
        // A PNG has no shrink-on-load: the reference is made from every pixel.
        _ = try Tool.run(vips, ["autorot", source.path, large.path])
        _ = try Tool.run(thumbnail, [large.path, "--size", "\(side)x\(side)", "-o", reference.path + "[strip]"])
        _ = try Tool.run(thumbnail, [source.path, "--size", "\(side)x\(side)", "-o", theirs.path + "[strip]"])
        let options = RenditionOptions(target: .size(width: side, height: side), resizeMode: .exact, format: .png)
        let ours = try TestPixels(Rendition.render(bytes, options).bytes)
        let exact = try TestPixels(Array(Data(contentsOf: reference)))
        return Comparison(ours: ours.psnr(exact), theirs: try TestPixels(Array(Data(contentsOf: theirs))).psnr(exact))
    }

    private func withFolder(_ body: (URL) throws -> Void) throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "safelight-quality-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        try body(folder)
    }

    @Test func `a rendition of a made picture is as good as libvips's`() throws {
        let bytes = TestPictures.jpeg(width: 960, height: 640) { x, y in
            let ring = sin(Double(x * x + y * y) / 30_000) + 0.5 * sin(Double(x) / 3)
            return (UInt8(128 + 80 * ring), UInt8(x / 4), UInt8(y / 3))
        }
        try withFolder { folder in
            for side in [96, 240, 300] {
                guard let result = try compare(bytes, side: side, in: folder) else {
                    print("note: vips is not installed; quality is not compared")
                    return
                }
                #expect(result.isAsGood, "\(side) px: \(result)")
            }
        }
    }

    @Test func `renditions of photographs are as good as libvips's`() throws {
        // Pictures whose small sizes have exactly their shape: libvips and we round the other side differently.
        let names = ["Landscape_1.jpg", "Portrait_6.jpg", "DSCN0029.jpg", "36-memory_error.jpg"]
        let files = SharedPhotos.files(["jpg"]).filter { names.contains($0.lastPathComponent) }
        if files.isEmpty { print("note: ../shared/photos is not there; quality on photographs is not compared") }
        try withFolder { folder in
            for file in files {
                for side in [96, 240, 480, 600] {
                    guard let result = try compare(SharedPhotos.bytes(file), side: side, in: folder) else { return }
                    #expect(result.isAsGood, "\(file.lastPathComponent) \(side) px: \(result)")
                }
            }
        }
    }
}
