public import Basics
public import Contracts
public import JSONValue
import PhotoModel

extension PhotoLibrary {
    /// The bytes that are read at a time.
    private static var videoPart: Int64 { 4 << 20 }

    /// Returns what is needed to play a video.
    public func playback(_ request: VideoPlayback) async throws(RPCError) -> VideoPlayback.Result {
        try await thumbnailer.ask(request, deadline: .seconds(120)).result
    }

    /// Reads the stream of a video, in parts, from an offset to its end.
    ///
    /// - Parameter receive: called with each part; returns false to stop
    /// - Throws: the thumbnailer's error, or what `receive` throws
    public func readStream(
        _ video: VideoPlayback.Result,
        from offset: Int64 = 0,
        _ receive: (Bytes) throws -> Bool
    ) async throws {
        var offset = offset
        while offset < video.size {
            let length = min(Self.videoPart, video.size - offset)
            let range = ReadVideo(asset: video.asset, stream: video.stream, offset: offset, length: length)
            let part = try await thumbnailer.ask(range, deadline: .seconds(60))
            guard let bytes = part.attachments.first, Int64(bytes.count) == length else {
                throw ErrorCode.interrupted.error("the video is incomplete; read it again")
            }
            guard try receive(bytes) else { return }
            offset += length
        }
    }
}
