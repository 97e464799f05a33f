public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// A video of the library: its description and its bytes. Replaces AV Foundation's type, which Linux lacks.
///
/// An edited video is one file too, so that there is no composition and no audio mix.
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

    /// Seconds.
    public var duration: TimeInterval { Double(playback.duration) / 1_000_000 }
    /// Pixels as displayed.
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

    /// Writes the parts of a file to a temporary file beside it, which is then renamed.
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

/// The size and encoder of an export, by AV Foundation's names.
public let AVAssetExportPresetPassthrough = "AVAssetExportPresetPassthrough"
public let AVAssetExportPresetLowQuality = "AVAssetExportPresetLowQuality"
public let AVAssetExportPresetMediumQuality = "AVAssetExportPresetMediumQuality"
public let AVAssetExportPresetHighestQuality = "AVAssetExportPresetHighestQuality"
public let AVAssetExportPreset640x480 = "AVAssetExportPreset640x480"
public let AVAssetExportPreset960x540 = "AVAssetExportPreset960x540"
public let AVAssetExportPreset1280x720 = "AVAssetExportPreset1280x720"
public let AVAssetExportPreset1920x1080 = "AVAssetExportPreset1920x1080"
public let AVAssetExportPreset3840x2160 = "AVAssetExportPreset3840x2160"
public let AVAssetExportPresetHEVC1920x1080 = "AVAssetExportPresetHEVC1920x1080"
public let AVAssetExportPresetHEVC3840x2160 = "AVAssetExportPresetHEVC3840x2160"
public let AVAssetExportPresetHEVCHighestQuality = "AVAssetExportPresetHEVCHighestQuality"

extension VideoExportPreset {
    /// Creates the preset with an AV Foundation name; nil for an unknown name.
    init?(photosName name: String) {
        switch name.replacingOccurrences(of: "AVAssetExportPreset", with: "") {
        case "Passthrough": self = .passthrough
        case "LowQuality": self = .low
        case "MediumQuality": self = .medium
        case "HighestQuality": self = .highest
        case "HEVC1920x1080": self = .hevc1920x1080
        case "HEVC3840x2160": self = .hevc3840x2160
        case "HEVCHighestQuality": self = .hevcHighest
        case let size: self.init(rawValue: size)
        }
    }
}

/// An export of a video, which the library encodes. Replaces AV Foundation's type, which Linux lacks.
public final class AVAssetExportSession: Sendable {
    private struct State {
        var url: URL?
        var progress: Float = 0
        var task: Task<Void, any Error>?
    }

    /// The video.
    public let asset: AVAsset
    /// The name of the preset.
    public let presetName: String
    private let request: ExportVideo
    private let state = Mutex(State())

    init(_ asset: AVAsset, _ presetName: String, _ request: ExportVideo) {
        self.asset = asset
        self.presetName = presetName
        self.request = request
    }

    /// The file to write.
    public var outputURL: URL? {
        get { state.withLock { $0.url } }
        set { state.withLock { $0.url = newValue } }
    }

    /// 0...1
    public var progress: Float { state.withLock { $0.progress } }

    /// Encodes the video and writes it to ``outputURL``.
    ///
    /// - Throws: a ``PHPhotosError``; after ``cancelExport()`` ``PHPhotosError/Code/userCancelled``
    public func export() async throws {
        guard let url = outputURL else { throw PHPhotosError(.invalidOptions, "set outputURL before the export") }
        try await export(to: url)
    }

    /// Encodes the video and writes it to a file.
    public func export(to url: URL) async throws {
        let (connection, request) = (asset.connection, request)
        let task = Task {
            do {
                let status = try await connection.client.exportVideo(request) { status in
                    guard status.duration > 0 else { return }
                    self.state.withLock { $0.progress = min(1, Float(status.done) / Float(status.duration)) }
                }
                guard let stream = status.stream else { throw PHPhotosError(.internalError, "the export has no file") }
                // Of several thumbnailers, only the one that encoded the file has it, even if another one is preferred
                // now.
                var sources = [connection.client.thumbnailer]
                if sources[0].addresses.count > 1 { sources += sources[0].instances.filter(\.isConnected) }
                do {
                    try await AVAsset.write(to: url, size: status.size) { offset in
                        let length = min(4 << 20, status.size - offset)
                        let part = ReadVideo(asset: request.asset, stream: stream, offset: offset, length: length)
                        while true {
                            do throws(RPCError) {
                                return Data(try await connection.ask(part, of: sources[0]).attachments.first ?? [])
                            } catch {
                                guard error.errorCode == .handleExpired, sources.count > 1 else { throw error }
                                sources.removeFirst()
                            }
                        }
                    }
                } catch {
                    await connection.client.endExport(status)
                    throw error
                }
                await connection.client.endExport(status)
                self.state.withLock { $0.progress = 1 }
            } catch {
                throw PHPhotosError(error)
            }
        }
        state.withLock { $0.task = task }
        try await withTaskCancellationHandler {
            try await task.value
        } onCancel: {
            task.cancel()
        }
    }

    public func cancelExport() { state.withLock { $0.task }?.cancel() }
}
