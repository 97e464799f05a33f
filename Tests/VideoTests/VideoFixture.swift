import Foundation
import TestSupport
import Testing
import Video

/// A video in a temporary folder, and the results of this module for it.
final class VideoFixture {
    let folder: TemporaryFolder
    let path: String

    /// - Parameter write: writes the video to a path
    init(_ name: String, _ write: (String) throws -> Void) throws {
        folder = try TemporaryFolder("video")
        path = folder.file(name)
        try write(path)
    }

    /// Opens the video and calls `body`.
    func open<Value>(
        limits: VideoLimits = VideoLimits(),
        isThorough: Bool = false,
        _ body: (borrowing VideoFile) throws -> Value
    ) throws -> Value {
        let handle = try FileHandle(forReadingFrom: URL(fileURLWithPath: path))
        defer { try? handle.close() }
        let size = Int64(try handle.seekToEnd())
        let file = try VideoFile(
            descriptor: handle.fileDescriptor,
            range: 0..<size,
            limits: limits,
            isThorough: isThorough
        )
        return try body(file)
    }

    func info() throws -> VideoInfo { try open(isThorough: true) { $0.info } }

    /// Returns a frame at its full size, and its time.
    func frame(_ position: FramePosition) throws -> (pixels: [UInt8], time: Int64) {
        try open { file in try Self.frame(position, file) }
    }

    static func frame(
        _ position: FramePosition,
        _ file: borrowing VideoFile,
        width: Int? = nil,
        height: Int? = nil
    ) throws -> (pixels: [UInt8], time: Int64) {
        let (width, height) = (width ?? file.storedWidth, height ?? file.storedHeight)
        let frame = try file.frame(position, width: width, height: height)
        let time = frame.time
        let pixels = frame.withPixels { Array(UnsafeRawBufferPointer(start: $0, count: 3 * width * height)) }
        return (pixels, time)
    }

    /// Returns the peak signal-to-noise ratio of two images in dB; infinite if they are equal, 0 if they are empty.
    static func psnr(_ first: some Collection<UInt8>, _ second: some Collection<UInt8>) -> Double {
        first.isEmpty ? 0 : PixelDistance.psnr(Array(first), Array(second))
    }
}
