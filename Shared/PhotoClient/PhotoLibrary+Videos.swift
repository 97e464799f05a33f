public import Basics
public import Contracts
public import JSONValue
public import PhotoModel

extension PhotoLibrary {
    /// The maximum number of bytes that one request reads.
    private static var maxPartBytes: Int64 { 4 << 20 }

    /// Returns the stream and the tracks that a player of a video needs.
    public func playback(_ request: VideoPlayback) async throws(RPCError) -> VideoPlayback.Result {
        try await thumbnailer.ask(request, deadline: .seconds(120)).result
    }

    /// Exports a video and waits for the finished file, which ``readStream(_:of:size:from:_:)`` reads, and
    /// ``endExport(_:)`` releases. If the task is cancelled, the export is too.
    ///
    /// - Parameter progress: called with each status of the running export
    /// - Throws: the error of the export
    public func exportVideo(
        _ request: ExportVideo,
        progress: (VideoExportStatus) -> Void = { _ in }
    ) async throws(RPCError) -> VideoExportStatus {
        // Only the instance that runs the export knows it.
        let thumbnailer = await thumbnailer.instance(for: request.asset)
        var status = try await begin(request, by: thumbnailer)
        do throws(RPCError) {
            while !status.state.isFinal {
                progress(status)
                let wait = WaitForVideoExport(export: status.export, wait: 500)
                status = try await thumbnailer.ask(wait, deadline: .seconds(30)).result
            }
        } catch {
            let cancel = CancelVideoExport(export: status.export)
            // The task may be cancelled, and the request must be sent nevertheless.
            await Task { _ = try? await thumbnailer.ask(cancel, deadline: .seconds(5)) }.value
            throw error
        }
        guard status.state == .done else {
            await endExport(status)
            let name = status.error?["name"]?.stringValue.flatMap(ErrorCode.init(rawValue:)) ?? .internalError
            throw name.error(status.error?["message"]?.stringValue ?? "the export failed")
        }
        return status
    }

    /// Releases a finished export after its file was read: a client may have few exports at a time, finished ones
    /// included. An equal export that begins later finishes at once while the thumbnailer keeps the file.
    public func endExport(_ status: VideoExportStatus) async {
        let cancel = CancelVideoExport(export: status.export)
        // Only the instance that ran the export knows it, and another one may be preferred meanwhile.
        let instances = thumbnailer.instances.filter(\.isConnected)
        // The task may be cancelled, and the request must be sent nevertheless.
        await Task {
            for instance in instances { _ = try? await instance.ask(cancel, deadline: .seconds(5)) }
        }.value
    }

    /// Begins an export; without a deadline if the video may have to be downloaded before.
    private func begin(
        _ request: ExportVideo,
        by thumbnailer: ServiceClient
    ) async throws(RPCError) -> VideoExportStatus {
        guard request.isNetworkAccessAllowed else {
            return try await thumbnailer.ask(request, deadline: .seconds(30)).result
        }
        for try await event in thumbnailer.stream(request, credit: 1 << 20) {
            if case .response(let response) = event { return response.result }
        }
        throw ErrorCode.interrupted.error("the export was not begun; export again")
    }

    /// Reads the stream of a video, in parts, from an offset to its end.
    ///
    /// - Parameter receive: called with each part; returns false to stop
    /// - Throws: the thumbnailer's error, or that of `receive`
    public func readStream(
        _ video: VideoPlayback.Result,
        from offset: Int64 = 0,
        _ receive: (Bytes) throws -> Bool
    ) async throws {
        try await readStream(video.stream, of: video.asset, size: video.size, from: offset, receive)
    }

    /// Reads a stream of `size` bytes, as ``readStream(_:from:_:)`` does. An export is read from the thumbnailer that
    /// ran it, even if another one is preferred meanwhile.
    public func readStream(
        _ stream: String,
        of asset: ObjectID,
        size: Int64,
        from offset: Int64 = 0,
        _ receive: (Bytes) throws -> Bool
    ) async throws {
        var offset = offset
        var source = thumbnailer
        var others: [ServiceClient]?
        while offset < size {
            let length = min(Self.maxPartBytes, size - offset)
            let range = ReadVideo(asset: asset, stream: stream, offset: offset, length: length)
            let part: ServiceResponse<ReadVideo.Result>
            do throws(RPCError) {
                part = try await source.ask(range, deadline: .seconds(60))
            } catch {
                guard error.errorCode == .handleExpired, thumbnailer.addresses.count > 1 else { throw error }
                var remaining = others ?? thumbnailer.instances.filter(\.isConnected)
                guard let next = remaining.popLast() else { throw error }
                source = next
                others = remaining
                continue
            }
            guard let bytes = part.attachments.first, Int64(bytes.count) == length else {
                throw ErrorCode.interrupted.error("the video is incomplete; read it again")
            }
            guard try receive(bytes) else { return }
            offset += length
        }
    }
}
