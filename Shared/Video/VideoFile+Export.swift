import CVideo
import Glibc

extension VideoFile {
    /// Writes an MPEG-4 or QuickTime file with the video track, the sound and the tags of a file that was opened
    /// thoroughly.
    ///
    /// - Parameter edit: the changes; they determine the size then, not the settings
    /// - Throws: ``VideoError/stopped`` if the sink asked for it, ``VideoError/outputTooLarge(limit:)`` above the most
    ///   bytes
    public func export(
        _ settings: VideoExportSettings,
        _ edit: VideoEdit? = nil,
        to sink: VideoExportSink
    ) throws(VideoError) -> VideoExportResult {
        let info = self.info
        let size = edit?.picture.map { ($0.width, $0.height) } ?? settings.size(of: info)
        let tone = VideoTone(info, isHEVC: settings.isHEVC, recolour: edit?.picture?.recolour)
        // An edit that leaves the frames as they are encodes them only if the file cannot hold them.
        let canCopy = safelight_video_can_copy(pointer, settings.isQuickTime ? 1 : 0) != 0
        let isCopied = edit.map { !$0.changesFrames && canCopy } ?? settings.isCopied
        let filters =
            isCopied ? nil : edit.map { $0.filters(info, size, tone) } ?? Self.filters(info, size, tone)
        var bytes: Int64 = 0
        let texts = [
            filters, settings.speed, tone.matrix, tone.primaries, tone.transfer, edit?.soundFilters,
        ].map { $0.map { strdup($0) } ?? nil }
        defer { for text in texts { free(text) } }
        var options = safelight_video_export_options()
        options.filters = UnsafePointer(texts[0])
        options.speed = UnsafePointer(texts[1])
        (options.matrix, options.primaries) = (UnsafePointer(texts[2]), UnsafePointer(texts[3]))
        options.transfer = UnsafePointer(texts[4])
        options.is_quicktime = settings.isQuickTime ? 1 : 0
        options.is_hevc = settings.isHEVC ? 1 : 0
        options.quality = Int32(clamping: settings.quality)
        options.sound_filters = UnsafePointer(texts[5])
        options.is_silent = edit?.volume == 0 ? 1 : 0
        options.start = edit?.start ?? 0
        options.end = edit?.end ?? -1
        options.threads = Int32(clamping: settings.threads)
        options.seconds = settings.seconds
        options.most_bytes = settings.maxBytes
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
        let overlay = isCopied ? nil : edit?.picture?.overlay
        let colours = isCopied ? [] : tone.colours
        let status = tone.withTable(peak: peak) { table, side in
            options.table = filters == nil ? nil : table
            options.table_side = side
            return (overlay?.pixels ?? []).withUnsafeBufferPointer { pixels in
                colours.withUnsafeBufferPointer { colours in
                    options.colours = colours.isEmpty ? nil : colours.baseAddress
                    if let overlay {
                        options.overlay = safelight_video_picture(
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
                // If the container can hold the picture, it cannot hold the sound.
                throw canCopy ? .notEncoded : .notCopied(codec)
            }
            throw problem
        }
        let shown = isCopied ? (info.pixelWidth, info.pixelHeight) : size
        return VideoExportResult(size: bytes, pixelWidth: shown.0, pixelHeight: shown.1)
    }

    /// Scales the stored frames, turns them upright, and converts their colours if the output has others.
    private static func filters(_ info: VideoInfo, _ size: (width: Int, height: Int), _ tone: VideoTone) -> String {
        let (width, height) = info.orientation >= 5 ? (size.height, size.width) : size
        let upright = "setsar=1" + turn(info.orientation)
        let scale = "scale=\(width):\(height):flags=bicubic+accurate_rnd"
        guard tone.isMapped else {
            return "[in]\(scale):\(tone.sameMatrix):out_range=tv,\(upright),format=\(tone.format)[out]"
        }
        return "[in]\(scale)+full_chroma_int+full_chroma_inp:in_color_matrix=\(tone.sourceMatrix),\(upright),"
            + "format=rgb48le[a];[a][table]haldclut=interp=tetrahedral,scale=flags=bicubic+accurate_rnd:"
            + "out_color_matrix=\(tone.matrix):out_range=tv,format=\(tone.format)[out]"
    }

    /// The filters that apply an EXIF orientation, behind a comma; empty if there are none.
    static func turn(_ orientation: Int) -> String {
        let turns = [
            2: ",hflip", 3: ",hflip,vflip", 4: ",vflip", 5: ",transpose=cclock_flip", 6: ",transpose=clock",
            7: ",transpose=clock_flip", 8: ",transpose=cclock",
        ]
        return turns[orientation] ?? ""
    }
}
