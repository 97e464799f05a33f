/// Films made by code: real containers with one video track and nothing to play.
public enum TestFilms {
    /// A QuickTime or MPEG-4 file.
    ///
    /// - Parameters:
    ///   - brand: "qt  ", "mp42" and so on.
    ///   - duration: milliseconds.
    ///   - isTurned: whether the track's matrix turns it by 90 degrees.
    ///   - created: seconds since 1970; nil for a clock that was never set.
    ///   - values: Apple's values, by what follows `com.apple.quicktime.`.
    ///   - frameRate: frames a second, as the table of their times says; 0 leaves it out.
    ///   - padding: bytes of content before the `moov` box.
    public static func film(
        brand: String = "qt  ",
        width: Int = 640,
        height: Int = 480,
        duration: Int = 2500,
        isTurned: Bool = false,
        created: Int? = nil,
        values: [(String, String)] = [],
        frameRate: Int = 0,
        padding: Int = 64
    ) -> [UInt8] {
        let made = created.map { $0 + 2_082_844_800 } ?? 0
        let unit: [UInt8] = number(0x1_0000)
        let (none, one): ([UInt8], [UInt8]) = ([0, 0, 0, 0], unit)
        let end = none + none + number(0x4000_0000)
        let straight = one + none + none + none + one + none + end
        let turned = none + one + none + number(0xFFFF_0000) + none + none + end
        let header = none + number(made) + number(made) + number(1000) + number(duration) + unit + [1, 0] + zeros(10)
        let movieHeader = box("mvhd", header + straight + zeros(24) + number(2))
        let trackStart = none + number(made) + number(made) + number(1) + none + number(duration) + zeros(16)
        let size = number(width << 16) + number(height << 16)
        let trackHeader = box("tkhd", trackStart + (isTurned ? turned : straight) + size)
        let handler = box("hdlr", none + none + Array("vide".utf8) + zeros(13))
        var media = handler
        if frameRate > 0 {
            let times = box("stts", none + number(1) + number(frameRate * duration / 1000) + number(1000))
            media += box("mdhd", none + none + none + number(frameRate * 1000) + number(frameRate * duration) + none)
            media += box("minf", box("stbl", times))
        }
        var moov = movieHeader + box("trak", trackHeader + box("mdia", media))
        if !values.isEmpty {
            let keys = values.flatMap { box("mdta", Array("com.apple.quicktime.\($0.0)".utf8)) }
            let items = values.enumerated().flatMap { index, value in
                let data = box("data", number(1) + none + Array(value.1.utf8))
                return number(data.count + 8) + number(index + 1) + data
            }
            let kind = box("hdlr", none + none + Array("mdta".utf8) + zeros(13))
            moov += box("meta", kind + box("keys", none + number(values.count) + keys) + box("ilst", items))
        }
        let start = box("ftyp", Array(brand.utf8) + none + Array(brand.utf8))
        return start + box("mdat", [UInt8](repeating: 7, count: padding)) + box("moov", moov)
    }

    private static func zeros(_ count: Int) -> [UInt8] { [UInt8](repeating: 0, count: count) }

    private static func number(_ value: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) }
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        number(content.count + 8) + Array(name.utf8) + content
    }
}
