public import Foundation

/// Videos that the `ffmpeg` program makes.
public enum FFmpegVideos {
    /// The video could not be created.
    public struct Failure: Error, CustomStringConvertible {
        public let description: String
    }

    /// Runs `ffmpeg` with arguments; the last one is usually the file to write.
    public static func ffmpeg(_ arguments: [String]) throws {
        let run = try RunningProgram.run(
            Needed.program("ffmpeg"),
            ["-hide_banner", "-loglevel", "error", "-nostdin", "-y"] + arguments,
            seconds: 120
        )
        guard run.status == 0 else { throw Failure(description: "ffmpeg \(arguments): \(run.errors)") }
    }

    /// Makes a video of a moving test image with sound.
    ///
    /// - Parameters:
    ///   - path: the file to write; its extension names the container
    ///   - arguments: the encoders' options
    public static func make(
        _ path: String,
        size: String = "320x240",
        rate: Int = 25,
        seconds: Double = 1,
        audio: Bool = true,
        _ arguments: [String]
    ) throws {
        let videoInput = ["-f", "lavfi", "-i", "testsrc2=size=\(size):rate=\(rate):duration=\(seconds)"]
        let audioInput = audio ? ["-f", "lavfi", "-i", "sine=frequency=440:duration=\(seconds)", "-shortest"] : []
        try ffmpeg(videoInput + audioInput + arguments + [path])
    }

    /// Returns a frame as rows of red, green and blue, decoded by the `ffmpeg` program.
    ///
    /// - Parameter filter: appended to the conversion, for example "scale=160:120"
    public static func frame(of path: String, at seconds: Double, filter: String? = nil) throws -> Data {
        let output = path + ".raw"
        defer { try? FileManager.default.removeItem(atPath: output) }
        // Seeking after the input decodes from the start and is exact.
        try ffmpeg(
            ["-i", path, "-ss", "\(seconds)", "-frames:v", "1"] + (filter.map { ["-vf", $0] } ?? [])
                + ["-f", "rawvideo", "-pix_fmt", "rgb24", output]
        )
        return try Data(contentsOf: URL(fileURLWithPath: output))
    }

    /// Returns the frames at some times as rows of red, green and blue, decoded by the `ffmpeg` program in one pass.
    ///
    /// - Parameters:
    ///   - times: in seconds, ascending
    ///   - duration: the time for which each frame is shown, in seconds
    ///   - filter: appended to the selection, for example "scale=160:120"
    public static func frames(
        of path: String,
        at times: [Double],
        duration: Double,
        filter: String
    ) throws -> [Data] {
        let output = path + ".raw"
        defer { try? FileManager.default.removeItem(atPath: output) }
        // The timestamps of containers are rounded.
        let rounding = 0.001
        let selected = times.map { "between(t,\($0 - rounding),\($0 + duration - 1.5 * rounding))" }.joined(
            separator: "+"
        )
        try ffmpeg(
            ["-i", path, "-fps_mode", "passthrough", "-vf", "select='\(selected)',\(filter)"]
                + ["-f", "rawvideo", "-pix_fmt", "rgb24", output]
        )
        let data = try Data(contentsOf: URL(fileURLWithPath: output))
        let size = data.count / max(1, times.count)
        guard size > 0, size * times.count == data.count else {
            throw Failure(description: "ffmpeg returned \(data.count) bytes for \(times.count) frames of \(path)")
        }
        return times.indices.map { data.subdata(in: $0 * size..<($0 + 1) * size) }
    }

    /// Returns the JSON output of `ffprobe` for a file.
    public static func probe(_ path: String) throws -> String {
        let run = try RunningProgram.run(
            Needed.program("ffprobe"),
            ["-v", "error", "-of", "json", "-show_format", "-show_streams", path],
            seconds: 60
        )
        return run.output
    }
}
