import CVideo
import Glibc

extension VideoFile {
    /// Writes an MPEG-4 or QuickTime file with the video track, the audio track and the tags of the video, which must
    /// have been opened with `isThorough`.
    ///
    /// - Parameter edit: the changes; changes of frames determine the size instead of the settings
    /// - Throws: ``VideoError/stopped`` if the sink requested it, ``VideoError/outputTooLarge(limit:)`` if the
    ///   file exceeds the limit
    public func export(
        _ settings: VideoExportSettings,
        _ edit: VideoEdit? = nil,
        to sink: VideoExportSink
    ) throws(VideoError) -> VideoExportResult {
        let info = self.info
        let size = edit?.frameChanges.map { ($0.width, $0.height) } ?? settings.size(of: info)
        let tone = VideoTone(info, isHEVC: settings.isHEVC, recolour: edit?.frameChanges?.recolour)
        // If an edit does not change the frames, they are encoded only if the container does not support their codec.
        let canCopy = safelight_video_can_copy(pointer, settings.isQuickTime ? 1 : 0) != 0
        let isCopied = edit.map { !$0.changesFrames && canCopy } ?? settings.isCopied
        let filters =
            isCopied ? nil : edit.map { $0.filters(info, size, tone) } ?? Self.filters(info, size, tone)
        var bytes: Int64 = 0
        let texts = [
            filters, settings.encoderPreset, tone.matrix, tone.primaries, tone.transfer, edit?.audioFilters,
        ].map { $0.map { strdup($0) } ?? nil }
        defer { for text in texts { free(text) } }
        var options = safelight_video_export_options()
        options.filters = UnsafePointer(texts[0])
        options.preset = UnsafePointer(texts[1])
        (options.matrix, options.primaries) = (UnsafePointer(texts[2]), UnsafePointer(texts[3]))
        options.transfer = UnsafePointer(texts[4])
        options.is_quicktime = settings.isQuickTime ? 1 : 0
        options.is_hevc = settings.isHEVC ? 1 : 0
        options.quality = Int32(clamping: settings.quality)
        options.audio_filters = UnsafePointer(texts[5])
        options.is_silent = edit?.volume == 0 ? 1 : 0
        options.start = edit?.start ?? 0
        options.end = edit?.end ?? -1
        options.threads = Int32(clamping: settings.threads)
        options.seconds = settings.seconds
        options.max_bytes = settings.maxBytes
        options.sink = Unmanaged.passUnretained(sink).toOpaque()
        options.write = { sink, position, bytes, count in
            guard let sink else { return 1 }
            let receiver = Unmanaged<VideoExportSink>.fromOpaque(sink).takeUnretainedValue()
            return receiver.write(UnsafeRawBufferPointer(start: bytes, count: count), position) ? 0 : 1
        }
        options.progress = { sink, time in
            guard let sink else { return 1 }
            return Unmanaged<VideoExportSink>.fromOpaque(sink).takeUnretainedValue().progress(max(0, time)) ? 0 : 1
        }
        let overlay = isCopied ? nil : edit?.frameChanges?.overlay
        let colours = isCopied ? [] : tone.colours
        let status = tone.withTable(peak: peak) { table, side in
            options.hald_clut = filters == nil ? nil : table
            options.hald_side = side
            return (overlay?.pixels ?? []).withUnsafeBufferPointer { pixels in
                colours.withUnsafeBufferPointer { colours in
                    options.yuv_table = colours.isEmpty ? nil : colours.baseAddress
                    if let overlay {
                        options.overlay = safelight_video_overlay(
                            pixels: pixels.baseAddress,
                            x: Int32(clamping: overlay.x),
                            y: Int32(clamping: overlay.y),
                            width: Int32(clamping: overlay.width),
                            height: Int32(clamping: overlay.height)
                        )
                    }
                    return safelight_video_export(pointer, &options, &bytes)
                }
            }
        }
        withExtendedLifetime(sink) {}
        guard status == SAFELIGHT_VIDEO_OK else {
            if status == SAFELIGHT_VIDEO_TOO_LARGE { throw .outputTooLarge(limit: settings.maxBytes) }
            let problem = error(status)
            if isCopied, case .unsupportedCodec(let codec) = problem {
                // If the container supports the codec of the video track, it does not support that of the audio.
                throw canCopy ? .notEncoded : .notCopied(codec)
            }
            throw problem
        }
        let (width, height) = isCopied ? (info.pixelWidth, info.pixelHeight) : size
        return VideoExportResult(size: bytes, pixelWidth: width, pixelHeight: height)
    }

    /// Returns the filters that scale the stored frames, rotate them upright, and convert their colours if the output
    /// has others.
    private static func filters(_ info: VideoInfo, _ size: (width: Int, height: Int), _ tone: VideoTone) -> String {
        let (width, height) = info.orientation >= 5 ? (size.height, size.width) : size
        let upright = "setsar=1" + orientationFilters(info.orientation)
        let scale = "scale=\(width):\(height):flags=bicubic+accurate_rnd"
        guard tone.isMapped else {
            return "[in]\(scale):\(tone.sameMatrix):out_range=tv,\(upright),format=\(tone.format)[out]"
        }
        return "[in]\(scale)+full_chroma_int+full_chroma_inp:in_color_matrix=\(tone.sourceMatrix),\(upright),"
            + "format=rgb48le[a];[a][table]haldclut=interp=tetrahedral,scale=flags=bicubic+accurate_rnd:"
            + "out_color_matrix=\(tone.matrix):out_range=tv,format=\(tone.format)[out]"
    }

    /// Returns the filters that apply an EXIF orientation, after a comma; empty if no filter is needed.
    static func orientationFilters(_ orientation: Int) -> String {
        let filters = [
            2: ",hflip", 3: ",hflip,vflip", 4: ",vflip", 5: ",transpose=cclock_flip", 6: ",transpose=clock",
            7: ",transpose=clock_flip", 8: ",transpose=cclock",
        ]
        return filters[orientation] ?? ""
    }
}

/// The receiver of an exported file. Both functions are called on the thread of the export.
public final class VideoExportSink {
    let write: (_ bytes: UnsafeRawBufferPointer, _ position: Int64) -> Bool
    let progress: (_ time: Int64) -> Bool

    /// - Parameters:
    ///   - write: writes bytes at a position of the file; returns false to stop
    ///   - progress: called with the microseconds that were exported so far; returns false to stop
    public init(
        write: @escaping (_ bytes: UnsafeRawBufferPointer, _ position: Int64) -> Bool,
        progress: @escaping (_ time: Int64) -> Bool
    ) {
        self.write = write
        self.progress = progress
    }
}
