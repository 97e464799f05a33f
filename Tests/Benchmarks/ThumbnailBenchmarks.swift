import Foundation
import Imaging
import PhotoModel
import TestSupport

/// Thumbnails of 256 pixels, from file to file, with one thread on both sides.
enum ThumbnailBenchmarks {
    static func run(_ bench: BenchmarkContext) async throws {
        guard bench.includes(group: "thumbnails") else { return }
        guard let peer = TestPaths.program("vipsthumbnail"), let vips = TestPaths.program("vips") else {
            return bench.addGap("thumbnails", "vipsthumbnail is not installed (Debian: libvips-tools)")
        }
        let folder = try bench.paths.folder("thumbnails")
        let image = try await largePhoto(folder, vips: vips)
        let count = bench.amount(12, quick: 2)
        let copies = try (0..<count).map { index in
            let path = "\(folder)/in-\(index).jpg"
            try image.write(to: URL(fileURLWithPath: path))
            return path
        }
        try await compare(
            bench,
            peer,
            name: "thumbnails.12-megapixel",
            files: copies,
            text: "\(count) JPEGs of 4000x3000 (\(image.count >> 10) KiB)",
            aim: .ratio(0.9)
        )
        guard let photos = bench.paths.photos else {
            return bench.addGap("thumbnails.photos", "there is no folder ../shared/photos; set another with --photos")
        }
        let real = try readablePhotos(in: photos)
        try await compare(
            bench,
            peer,
            name: "thumbnails.photos",
            files: bench.isFast ? Array(real.prefix(5)) : real,
            text: "real JPEGs",
            aim: .ratio(0.9)
        )
    }

    private static func compare(
        _ bench: BenchmarkContext,
        _ peer: String,
        name: String,
        files: [String],
        text: String,
        aim: ComparisonTarget
    ) async throws {
        let folder = try bench.paths.folder("\(name).out")
        let comparison = Comparison(
            name: name,
            ours: "Imaging.RenditionRenderer in process, \(text)",
            peer: "vipsthumbnail, one process for the set",
            unit: "images/s",
            aim: aim
        )
        setenv("VIPS_CONCURRENCY", "1", 1)
        try await bench.compare(
            [comparison],
            ours: {
                let time = try await blockingSeconds {
                    for (index, file) in files.enumerated() { try render(file, to: "\(folder)/ours-\(index).jpg") }
                }
                return [Double(files.count) / time]
            },
            peer: {
                let time = try await seconds {
                    try await runProgram(
                        peer,
                        ["--size", "256", "-o", "\(folder)/vips-%s.jpg[Q=85,strip]"] + files
                    )
                }
                return [Double(files.count) / time]
            }
        )
    }

    private static func render(_ file: String, to output: String) throws {
        let bytes = [UInt8](try Data(contentsOf: URL(fileURLWithPath: file)))
        let image = try RenditionRenderer.render(bytes, options)
        try Data(image.bytes).write(to: URL(fileURLWithPath: output))
    }

    private static let options = RenditionOptions(
        target: .size(width: 256, height: 256),
        resizeMode: .exact,
        quality: 85
    )

    /// Writes and returns a JPEG, by default of 12 megapixels, with about as much detail as a photo: gradients, edges
    /// and a little noise from a seeded generator.
    static func largePhoto(
        _ folder: String,
        vips: String,
        width: Int = 4000,
        height: Int = 3000
    ) async throws -> Data {
        var pixels = [UInt8]("P6 \(width) \(height) 255\n".utf8)
        pixels.reserveCapacity(pixels.count + 3 * width * height)
        var random = SeededRandom(seed: 12)
        for y in 0..<height {
            var noise: UInt64 = 0
            for x in 0..<width {
                if x & 7 == 0 { noise = random.next() }
                let grain = Int(noise & 15)
                noise >>= 8
                let edge = (x / 61 + y / 47) % 5 == 0 ? 60 : 0
                let wave = (x &* x / 4096 + y &* 3) & 63
                pixels.append(UInt8(clamping: 40 + x * 120 / width + edge + grain))
                pixels.append(UInt8(clamping: 60 + y * 110 / height + wave + grain))
                pixels.append(UInt8(clamping: 150 - edge + wave / 2 + grain))
            }
        }
        let source = URL(fileURLWithPath: "\(folder)/source.ppm")
        try Data(pixels).write(to: source)
        try await runProgram(vips, ["copy", source.path, "\(folder)/source.jpg[Q=88]"])
        return try Data(contentsOf: URL(fileURLWithPath: "\(folder)/source.jpg"))
    }

    /// Returns the JPEGs of a folder that the project's renderer can read; some test photos are damaged.
    private static func readablePhotos(in folder: String) throws -> [String] {
        let names = FileManager.default.subpaths(atPath: folder) ?? []
        return names.sorted().map { "\(folder)/\($0)" }.filter { path in
            guard path.lowercased().hasSuffix(".jpg") || path.lowercased().hasSuffix(".jpeg"),
                let bytes = FileManager.default.contents(atPath: path)
            else { return false }
            return (try? RenditionRenderer.render([UInt8](bytes), options)) != nil
        }
    }
}

/// Runs blocking work on a new thread, and returns the seconds that it took.
func blockingSeconds(_ work: @escaping @Sendable () throws -> Void) async throws -> Double {
    try await runBlocking {
        let start = Clocks.microseconds()
        try work()
        return Double(Clocks.microseconds() - start) / 1e6
    }
}
