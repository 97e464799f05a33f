import PhotoClient
import Foundation
import Contracts
import JSONValue
import PhotoModel

extension PHImageManager {
    /// Requests a video to play (S-59).
    @discardableResult
    public func requestPlayerItem(
        forVideo asset: PHAsset,
        options: PHVideoRequestOptions?,
        resultHandler: @escaping @Sendable (AVPlayerItem?, [AnyHashable: Any]?) -> Void
    ) -> PHImageRequestID {
        requestVideo(asset, options) { resultHandler($0.value.map { AVPlayerItem($0) }, $0.info) }
    }

    /// Requests an export of a video with a preset (S-60). The session is started by its `export`.
    @discardableResult
    public func requestExportSession(
        forVideo asset: PHAsset,
        options: PHVideoRequestOptions?,
        exportPreset: String,
        resultHandler: @escaping @Sendable (AVAssetExportSession?, [AnyHashable: Any]?) -> Void
    ) -> PHImageRequestID {
        let version = VideoVersion(number: options?.version.rawValue ?? 0) ?? .current
        let id = asset.id
        let isNetworkAccessAllowed = options?.isNetworkAccessAllowed ?? false
        return requestVideo(asset, options) { result in
            var result = result
            guard let video = result.value else { return resultHandler(nil, result.info) }
            guard let preset = VideoExportPreset(photosName: exportPreset) else {
                result.value = nil
                result.error = PHPhotosError(
                    .invalidOptions,
                    "no export preset \(exportPreset.prefix(80)); there are "
                        + VideoExportPreset.allCases.map(\.rawValue).joined(separator: ", ")
                )
                return resultHandler(nil, result.info)
            }
            var request = ExportVideo(asset: id, preset: preset, version: version)
            request.isNetworkAccessAllowed = isNetworkAccessAllowed
            resultHandler(AVAssetExportSession(video, exportPreset, request), result.info)
        }
    }

    /// Requests a video as an asset (S-61). There is no audio mix: the library's videos are files.
    @discardableResult
    public func requestAVAsset(
        forVideo asset: PHAsset,
        options: PHVideoRequestOptions?,
        resultHandler: @escaping @Sendable (AVAsset?, AVAudioMix?, [AnyHashable: Any]?) -> Void
    ) -> PHImageRequestID {
        requestVideo(asset, options) { resultHandler($0.value, nil, $0.info) }
    }

    /// Returns a video, as ``requestAVAsset(forVideo:options:resultHandler:)`` does.
    ///
    /// - Throws: a ``PHPhotosError``
    public func video(for asset: PHAsset, options: PHVideoRequestOptions? = nil) async throws -> AVAsset {
        do throws(RPCError) {
            let access = NetworkAccess(
                options?.isNetworkAccessAllowed,
                options?.progressHandler,
                asset.connection.makeRequestID()
            )
            return try await Self.load(Self.request(asset.id, options), asset.connection, access)
        } catch {
            throw PHPhotosError(error)
        }
    }

    private func requestVideo(
        _ asset: PHAsset,
        _ options: PHVideoRequestOptions?,
        _ handler: @escaping @Sendable (ImageResult<AVAsset>) -> Void
    ) -> PHImageRequestID {
        let connection = asset.connection
        let id = connection.makeRequestID()
        let request = Self.request(asset.id, options)
        let access = NetworkAccess(options?.isNetworkAccessAllowed, options?.progressHandler, id)
        run(id, connection) {
            let result: ImageResult<AVAsset>
            do throws(RPCError) {
                result = ImageResult(try await Self.load(request, connection, access), id)
            } catch {
                result = ImageResult(error, isCancelled: Task.isCancelled, id)
            }
            connection.callbacks.async { handler(result) }
        }
        return id
    }

    private static func request(_ id: ObjectID, _ options: PHVideoRequestOptions?) -> VideoPlayback {
        var request = VideoPlayback(
            asset: id,
            version: VideoVersion(number: options?.version.rawValue ?? 0) ?? .current,
            deliveryMode: VideoDeliveryMode(number: options?.deliveryMode.rawValue ?? 0) ?? .automatic
        )
        request.isNetworkAccessAllowed = options?.isNetworkAccessAllowed ?? false
        return request
    }

    private static func load(
        _ request: VideoPlayback,
        _ connection: LibraryConnection,
        _ access: NetworkAccess
    ) async throws(RPCError) -> AVAsset {
        let playback = try await connection.ask(request, of: connection.client.thumbnailer, access).result
        return AVAsset(playback, connection, access)
    }
}
