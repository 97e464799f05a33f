import CPixels
import CVideo

/// The colours of an exported video: those of its source, or BT.709 to which high dynamic range is mapped.
struct VideoTone {
    /// FFmpeg's names for the output.
    let matrix: String
    let primaries: String
    let transfer: String
    /// The pixel format of the output.
    let format: String
    /// The matrix of the source, as the scale filter names it.
    let sourceMatrix: String
    /// 1 for PQ and 2 for HLG if the colours are mapped, else 0.
    private let mapped: Int32
    private let recolour: VideoEdit.Recolouring?

    /// - Parameter recolour: changes the colours of the output
    init(_ info: VideoInfo, isHEVC: Bool, recolour: VideoEdit.Recolouring? = nil) {
        self.recolour = recolour
        let known = ["bt709", "smpte170m", "bt470bg", "bt2020nc", "bt2020c", "smpte240m", "fcc"]
        // Without a declared matrix, the stored height decides, as for frames that are decoded.
        let storedHeight = info.orientation >= 5 ? info.pixelWidth : info.pixelHeight
        let guess = storedHeight >= 720 ? "bt709" : "smpte170m"
        let source = known.contains(info.matrix) ? info.matrix : info.isHDR ? "bt2020nc" : guess
        sourceMatrix = source.hasPrefix("bt2020") ? "bt2020" : source
        if info.isHDR, !isHEVC {
            (matrix, primaries, transfer, format) = ("bt709", "bt709", "bt709", "yuv420p")
            mapped = info.transfer == "smpte2084" ? 1 : 2
        } else {
            (matrix, primaries, transfer) = (source, info.primaries, info.transfer)
            format = info.isHDR ? "yuv420p10le" : "yuv420p"
            mapped = 0
        }
    }

    var isMapped: Bool { mapped > 0 }

    /// The options of a scale filter for the same matrix on both sides, if colours are not mapped. They have no effect
    /// on YUV; without them libavfilter converts RGB to YUV by BT.601.
    var sameMatrix: String { "in_color_matrix=\(sourceMatrix):out_color_matrix=\(sourceMatrix)" }

    /// The level of the Hald CLUT: the square root of the number of points on an axis.
    private static let level = 8

    /// The table that recolours frames of the output; empty without recolouring, or if the Hald CLUT includes it.
    ///
    /// The table is over Y, U and V, because converting each frame to RGB and back takes longer than encoding it.
    var colours: [Int16] {
        guard let recolour, !isMapped else { return [] }
        let points = Int(SAFELIGHT_VIDEO_TABLE_POINTS * SAFELIGHT_VIDEO_TABLE_POINTS * SAFELIGHT_VIDEO_TABLE_POINTS)
        var values = [UInt16](repeating: 0, count: 3 * points)
        safelight_video_table_points(matrix, &values)
        recolour(&values)
        var table = [Int16](repeating: 0, count: 4 * points)
        safelight_video_table_fill(matrix, values, &table)
        return table
    }

    /// Calls `body` with the Hald CLUT of the mapping and the recolouring; with nil if colours are not mapped.
    func withTable<Result>(peak: Double, _ body: (UnsafePointer<UInt16>?, _ side: Int32) -> Result) -> Result {
        guard isMapped else { return body(nil, 0) }
        let points = Self.level * Self.level
        let side = points * Self.level
        var source: [UInt16] = []
        source.reserveCapacity(3 * side * side)
        func value(_ index: Int) -> UInt16 { UInt16(65_535 * index / (points - 1)) }
        for blue in 0..<points {
            for green in 0..<points {
                for red in 0..<points { source += [value(red), value(green), value(blue)] }
            }
        }
        // libswscale converts the 8-bit value 255 of YUV to 65280.
        var small = [UInt8](repeating: 0, count: source.count)
        safelight_rgb_to_srgb(source, &small, side * side, mapped, 1, 65_280, peak)
        source = small.map { UInt16($0) * 257 }
        recolour?(&source)
        return body(source, Int32(side))
    }
}
