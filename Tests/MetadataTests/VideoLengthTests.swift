import Foundation
import ImageFormats
import TestSupport
import Testing

/// Tests of videos whose end is missing, in containers that store their length.
@Suite(.timeLimit(.minutes(2)))
struct VideoLengthTests {
    private func isWhole(_ bytes: [UInt8]) throws -> Bool {
        try #require(VideoFileType.sniff(bytes)).isWhole(size: bytes.count) { offset, count in
            Array(bytes.dropFirst(offset).prefix(count))
        }
    }

    @Test(arguments: [
        ("a.avi", ["-c:v", "mpeg4", "-c:a", "mp2"]), ("a.mkv", ["-c:v", "mpeg4", "-c:a", "aac"]),
        ("a.webm", ["-c:v", "libvpx", "-c:a", "libvorbis"]),
    ])
    func `a video without its end is incomplete`(_ name: String, _ options: [String]) throws {
        let folder = try TemporaryFolder("length")
        try FFmpegVideos.make(folder.file(name), size: "176x144", seconds: 0.5, options)
        let bytes = [UInt8](try Data(contentsOf: folder.url.appending(path: name)))
        #expect(try isWhole(bytes))
        #expect(try isWhole(bytes + Array("trailer of a camera".utf8)))
        for fraction in [0.3, 0.5, 0.66, 0.9] {
            #expect(try !isWhole(Array(bytes.prefix(Int(Double(bytes.count) * fraction)))), "\(fraction)")
        }
    }

    @Test func `an unfinished recording counts as whole, because it has no length`() throws {
        let folder = try TemporaryFolder("length")
        try FFmpegVideos.make(folder.file("live.mkv"), seconds: 0.5, audio: false, ["-c:v", "mpeg4", "-live", "1"])
        var bytes = [UInt8](try Data(contentsOf: folder.url.appending(path: "live.mkv")))
        #expect(try isWhole(Array(bytes.prefix(bytes.count / 2))))
        try FFmpegVideos.make(folder.file("a.avi"), seconds: 0.5, ["-c:v", "mpeg4", "-c:a", "mp2"])
        bytes = [UInt8](try Data(contentsOf: folder.url.appending(path: "a.avi")))
        let movie = try #require(bytes.firstRange(of: Array("movi".utf8))).lowerBound
        for length: [UInt8] in [[0, 0, 0, 0], [255, 255, 255, 255]] {
            bytes.replaceSubrange(movie - 4..<movie, with: length)
            #expect(try isWhole(Array(bytes.prefix(bytes.count / 2))))
        }
    }
}
