import Foundation
import Imaging
import TestSupport

/// JPEG photos of 8, 12 and 24 megapixels, scaled from real ones; no two files have the same bytes.
struct PhotoSet {
    /// The paths of the JPEG files.
    let photos: [String]
    /// The paths of HEIC files of real phones, each with an embedded preview; empty if there are none.
    let heicFiles: [String]

    /// Widths and heights of photos of 8, 12 and 24 megapixels.
    private static let sizes = [(3464, 2310), (4000, 3000), (6000, 4000)]

    init(_ bench: BenchmarkContext, count: Int) async throws {
        guard let vips = TestPaths.program("vipsthumbnail") else {
            throw BenchmarkError("vipsthumbnail is not installed (Debian: libvips-tools)")
        }
        guard let folder = bench.paths.photos else {
            throw BenchmarkError("there is no folder ../shared/photos; set another with --photos")
        }
        let target = try bench.paths.folder("album")
        let originals = Self.files(folder, ["jpg", "jpeg"], minBytes: 700_000).filter { !$0.contains("corrupted") }
        guard !originals.isEmpty else { throw BenchmarkError("no photo of the folder is large enough") }
        var photos: [String] = []
        for index in 0..<count {
            let (width, height) = Self.sizes[index % Self.sizes.count]
            let source = originals[index % originals.count]
            let path = "\(target)/photo-\(index).jpg"
            try await runProgram(vips, [source, "--size", "\(width)x\(height)!", "-o", "\(path)[Q=90]"])
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: path)))
            // Each photo gets a different comment segment, so that no two photos have the same cached image.
            bytes.insert(contentsOf: [0xFF, 0xFE, 0x00, 0x04, UInt8(index >> 8), UInt8(index & 0xFF)], at: 2)
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            photos.append(path)
        }
        self.photos = photos
        var heicFiles: [String] = []
        let heic = Self.files(folder, ["heic"], minBytes: 500_000).filter { path in
            let bytes = FileManager.default.contents(atPath: path).map { [UInt8]($0) } ?? []
            return (try? Preview.embedded(in: bytes, RenditionOptions())) != nil
        }
        for index in 0..<(heic.isEmpty ? 0 : count) {
            let path = "\(target)/phone-\(index).heic"
            var bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: heic[index % heic.count])))
            bytes += [0, 0, 0, 12] + Array("free".utf8) + [0, 0, UInt8(index >> 8), UInt8(index & 0xFF)]
            try Data(bytes).write(to: URL(fileURLWithPath: path))
            heicFiles.append(path)
        }
        self.heicFiles = heicFiles
    }

    /// Copies the photos with a preview of 160x120 pixels in their EXIF, and returns the paths of the copies.
    func copyWithPreviews(_ bench: BenchmarkContext, _ exiftool: String) async throws -> [String] {
        guard let vips = TestPaths.program("vipsthumbnail") else {
            throw BenchmarkError("vipsthumbnail is not installed")
        }
        let target = try bench.paths.folder("previewed")
        var copies: [String] = []
        for (index, photo) in photos.enumerated() {
            let (preview, copy) = ("\(target)/preview-\(index).jpg", "\(target)/photo-\(index).jpg")
            try await runProgram(vips, [photo, "--size", "160x120!", "-o", "\(preview)[Q=80,strip]"])
            try await runProgram(exiftool, ["-q", "-ThumbnailImage<=\(preview)", "-o", copy, photo])
            copies.append(copy)
        }
        return copies
    }

    private static func files(_ folder: String, _ extensions: [String], minBytes: Int) -> [String] {
        let names = FileManager.default.subpaths(atPath: folder) ?? []
        return names.sorted().map { "\(folder)/\($0)" }.filter { path in
            guard extensions.contains((path as NSString).pathExtension.lowercased()) else { return false }
            let size = try? FileManager.default.attributesOfItem(atPath: path)[.size] as? Int
            return (size ?? 0) >= minBytes
        }
    }
}

/// Does some work, and returns the peak memory (PSS) of some processes meanwhile, in bytes.
func peakBytes(
    of processes: @escaping @Sendable () -> [Int32],
    during work: () async throws -> Void
) async throws -> Int {
    let monitor = Task.detached {
        var peak = 0
        while !Task.isCancelled {
            peak = max(peak, processes().reduce(0) { $0 + ProcessTable.proportionalBytes($1) })
            try? await Task.sleep(for: .milliseconds(20))
        }
        return peak
    }
    do {
        try await work()
    } catch {
        monitor.cancel()
        throw error
    }
    monitor.cancel()
    return await monitor.value
}
