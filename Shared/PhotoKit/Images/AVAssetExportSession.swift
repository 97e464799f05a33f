public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// The presets of an export: AV Foundation's names of sizes and encoders.
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

    /// The progress of the export, from 0 to 1.
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
                // Of several thumbnailers, only the one that encoded the file has it. Another one may be preferred now.
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
