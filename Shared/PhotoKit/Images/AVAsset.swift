public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// A video of the library: its description and its bytes. Replaces AV Foundation's type, which Linux lacks.
///
/// An edited video is also one file, so there is no composition and no audio mix.
public final class AVAsset: Sendable {
    let connection: LibraryConnection
    let playback: VideoPlayback.Result
    /// The network access of the request that returned the video.
    let access: NetworkAccess

    init(_ playback: VideoPlayback.Result, _ connection: LibraryConnection, _ access: NetworkAccess) {
        self.access = access
        self.playback = playback
        self.connection = connection
    }

    /// The duration in seconds.
    public var duration: TimeInterval { Double(playback.duration) / 1_000_000 }
    /// The size as displayed, in pixels.
    public var naturalSize: CGSize { CGSize(width: playback.pixelWidth, height: playback.pixelHeight) }
    /// Frames per second; 0 if unknown.
    public var nominalFrameRate: Double { playback.frameRate }
    /// The angle by which players rotate the stored frames, in degrees clockwise.
    public var rotation: Double { playback.rotation }
    /// True for high dynamic range.
    public var isHDR: Bool { playback.isHDR }
    /// The media type of the file, for example `video/mp4`.
    public var mimeType: String { playback.mimeType }
    /// The size of the file in bytes.
    public var byteCount: Int64 { playback.size }
    /// True if a player can start before it has all bytes.
    public var isPlayableWhileLoading: Bool { playback.isFastStart }
    /// The tracks of the file.
    public var tracks: [AVAssetTrack] { playback.tracks.map { AVAssetTrack($0) } }

    /// Returns the bytes at an offset of the file; fewer than requested at its end.
    ///
    /// - Parameter length: at most 8 MiB
    public func data(from offset: Int64, length: Int) async throws -> Data {
        let length = min(Int64(min(length, ReadResource.maxReplyBytes)), byteCount - offset)
        guard length > 0 else { return Data() }
        var request = ReadVideo(asset: playback.asset, stream: playback.stream, offset: offset, length: length)
        request.isNetworkAccessAllowed = access.isAllowed
        do throws(RPCError) {
            return Data(try await connection.bytes(request, access))
        } catch {
            throw PHPhotosError(error)
        }
    }

    /// Writes the file.
    public func write(to url: URL) async throws {
        try await Self.write(to: url, size: byteCount) { [self] in try await data(from: $0, length: 4 << 20) }
    }

    /// Writes the parts of a file to a temporary file in the same folder, which is then renamed.
    static func write(
        to url: URL,
        size: Int64,
        _ read: (_ offset: Int64) async throws -> Data
    ) async throws {
        let temporary = url.appendingPathExtension("part")
        guard FileManager.default.createFile(atPath: temporary.path, contents: nil) else {
            throw PHPhotosError(.invalidOptions, "\(temporary.path) cannot be written")
        }
        do {
            let file = try FileHandle(forWritingTo: temporary)
            defer { try? file.close() }
            var offset: Int64 = 0
            while offset < size {
                let part = try await read(offset)
                guard !part.isEmpty else { throw PHPhotosError(.interrupted, "the video is incomplete; read it again") }
                try file.write(contentsOf: part)
                offset += Int64(part.count)
            }
            guard rename(temporary.path, url.path) == 0 else {
                throw PHPhotosError(.invalidOptions, "\(url.path) cannot be written")
            }
        } catch {
            try? FileManager.default.removeItem(at: temporary)
            throw error
        }
    }
}

/// A track of a video. Replaces AV Foundation's type, which Linux lacks.
public struct AVAssetTrack: Sendable, Hashable {
    /// `video`, `audio`, `text` or `other`.
    public let mediaType: String
    /// FFmpeg's name of the codec, for example `h264`.
    public let codec: String
    public let naturalSize: CGSize
    /// Frames per second; 0 for other tracks.
    public let nominalFrameRate: Double
    public let channelCount: Int

    init(_ track: VideoPlayback.Track) {
        mediaType = track.kind
        codec = track.codec
        naturalSize = CGSize(width: track.pixelWidth, height: track.pixelHeight)
        nominalFrameRate = track.frameRate
        channelCount = track.channels
    }
}

/// A video to play. Replaces AV Foundation's type, which Linux lacks; a player reads the bytes of ``asset``.
public final class AVPlayerItem: Sendable {
    public let asset: AVAsset

    init(_ asset: AVAsset) { self.asset = asset }
}

/// The volumes of a composition's tracks: always nil, because the library's videos are files.
public final class AVAudioMix: Sendable {
    private init() {}
}
