/// The contents of a video's container header: QuickTime and MPEG-4 files, detected by their first bytes.
///
/// Only the `moov` box is read, which may be at either end of a file of any size, and the headers of fragments if
/// `moov` does not have their duration. No samples are decoded.
public struct MovieHeader: Sendable, Hashable {
    /// The uniform type identifier.
    public var contentType: String
    /// Pixels of the first video track as displayed; 0 if there is no video track.
    public var pixelWidth = 0
    public var pixelHeight = 0
    /// The duration in microseconds.
    public var duration: Int64 = 0
    /// Frames per second of the first video track; 0 if unknown.
    public var frameRate = 0.0
    /// The creation time from `mvhd` in microseconds since 1970, UTC by the standard; nil if the camera's clock was
    /// never set.
    public var created: Int64?
    /// Apple's `com.apple.quicktime.` values by the rest of their key: `content.identifier`, `creationdate`, … Values
    /// that other programs write into other boxes have the same keys.
    public var values: [String: String] = [:]
    /// The frames per second at which the camera recorded, as Android writes it; nil if the file does not state it.
    public var captureRate: Double?
    /// The XMP packet; nil if there is none.
    public var xmp: [UInt8]?

    /// Creates the header of a video whose container another module reads.
    public init(contentType: String) { self.contentType = contentType }

    /// The largest `moov` box that is read, in bytes.
    public static let maxIndexBytes = 64 << 20

    /// Returns the uniform type identifier of a video from its first bytes (16 are enough); nil for anything else.
    public static func sniff(_ bytes: some Collection<UInt8>) -> String? {
        let reader = ByteReader(Array(bytes.prefix(16)))
        guard let name = reader.text(4, 4) else { return nil }
        // Old QuickTime files have no `ftyp` box.
        if ["moov", "wide", "mdat"].contains(name) { return "com.apple.quicktime-movie" }
        guard name == "ftyp", let brand = reader.text(8, 4) else { return nil }
        if brand == "qt  " { return "com.apple.quicktime-movie" }
        if brand.hasPrefix("M4V") { return "com.apple.m4v-video" }
        if brand.hasPrefix("3gp") { return "public.3gpp" }
        if brand.hasPrefix("3g2") { return "public.3gpp2" }
        let known = ["isom", "iso2", "iso3", "iso4", "iso5", "iso6", "mp41", "mp42", "avc1", "MSNV", "dash", "XAVC"]
        return known.contains(brand) ? "public.mpeg-4" : nil
    }

    /// The maximum number of boxes of a file that are examined; a fragmented video has two for each fragment.
    private static let maxBoxes = 65_536

    /// Finds and parses the `moov` box of a file.
    ///
    /// - Parameters:
    ///   - contentType: the result of ``sniff(_:)``
    ///   - size: the size of the file in bytes
    ///   - read: returns the bytes of a range; fewer at the end of the file
    /// - Throws: errors of `read`, or a ``ImageHeader/Failure``: `truncated` if the file was cut off
    public static func find(
        contentType: String,
        size: Int,
        read: (_ offset: Int, _ count: Int) throws -> [UInt8]
    ) throws -> MovieHeader {
        var offset = 0
        var found: MovieHeader?
        var xmp: [UInt8]?
        var fragments: MovieFragments?
        var hasContent = false
        for _ in 0..<maxBoxes where offset < size {
            let head = ByteReader(try read(offset, 16))
            let name = head.text(4, 4)
            let isContent = name == "mdat" || name == "moof"
            let extent: (length: Int, start: Int)
            do {
                extent = try Self.extent(of: head, upTo: size - offset)
            } catch {
                // Some cameras append bytes that are not boxes to a complete video. Players ignore them.
                if found != nil, hasContent, !isContent { break }
                throw error
            }
            let (length, start) = extent
            hasContent = hasContent || isContent
            if name == "moov" {
                guard length <= maxIndexBytes else { throw ImageHeader.Failure.invalid("a moov of \(length) bytes") }
                let content = ByteReader(try read(offset + start, length - start))
                found = MovieHeader(contentType: contentType)
                found?.read(content)
                let known = found?.duration ?? 0
                if known == 0 || !isWhole(content) { fragments = MovieFragments(content, hasSamples: known > 0) }
            } else if name == "moof", fragments?.reserve(length) == true {
                fragments?.add(ByteReader(try read(offset + start, length - start)))
            } else if name == "uuid", (16...maxXMPBytes).contains(length - start) {
                let content = try read(offset + start, length - start)
                if content.starts(with: uuidOfXMP) { xmp = Array(content.dropFirst(16)) }
            }
            offset += length
        }
        guard var found else { throw ImageHeader.Failure.truncated }
        found.xmp = xmp ?? found.xmp
        if let fragments { found.duration = max(found.duration, fragments.duration) }
        return found
    }

    /// Returns the length of a box and that of its head.
    private static func extent(
        of head: ByteReader,
        upTo rest: Int
    ) throws(ImageHeader.Failure) -> (length: Int, start: Int) {
        guard var length = head.big32(0), head.text(4, 4) != nil else { throw .truncated }
        var start = 8
        if length == 1 {
            guard let large = head.big(8, 8) else { throw .truncated }
            length = large
            start = 16
        } else if length == 0 {
            length = rest
        }
        guard length >= start else { throw .invalid("a box of \(length) bytes") }
        guard length <= rest else { throw .truncated }
        return (length, start)
    }

    /// Returns true if the header has the duration of all fragments.
    private static func isWhole(_ moov: ByteReader) -> Bool {
        boxes(moov).contains { $0.name == "mvex" && boxes($0.content).contains { $0.name == "mehd" } }
    }

    /// The largest XMP packet that is read, in bytes, and the identifier of its box.
    static let maxXMPBytes = 4 << 20
    private static let uuidOfXMP: [UInt8] = [
        0xBE, 0x7A, 0xCF, 0xCB, 0x97, 0xA9, 0x42, 0xE8, 0x9C, 0x71, 0x99, 0x94, 0x91, 0xE3, 0xAF, 0xAC,
    ]

    typealias Box = (name: String, content: ByteReader)

    /// Returns the boxes inside a box, at most 1024.
    static func boxes(_ reader: ByteReader, from start: Int = 0) -> [Box] {
        var result: [Box] = []
        var offset = start
        while result.count < 1024, let length = reader.big32(offset), let raw = reader.slice(offset + 4, 4),
            length >= 8,
            let content = reader.slice(offset + 8, length - 8)
        {
            result.append((String(raw.map { Character(Unicode.Scalar($0)) }), ByteReader(content)))
            offset += length
        }
        return result
    }

    private mutating func read(_ moov: ByteReader) {
        let header = Self.boxes(moov).first { $0.name == "mvhd" }?.content
        let scale = header.flatMap { $0.big32($0.byte(0) == 1 ? 20 : 12) } ?? 0
        for box in Self.boxes(moov) {
            switch box.name {
            case "mvhd": readTimes(box.content)
            case "trak": readSize(box.content)
            case "meta": readValues(box.content)
            case "mvex": readFragmentedDuration(box.content, scale: scale)
            default: continue
            }
        }
        // User data is read last, because the keys above are more exact.
        for box in Self.boxes(moov) where box.name == "udta" { readUserData(box.content) }
    }

    /// Reads the duration of a fragmented file whose `mvhd` has a duration of zero.
    private mutating func readFragmentedDuration(_ box: ByteReader, scale: Int) {
        guard duration == 0, scale > 0,
            let header = Self.boxes(box).first(where: { $0.name == "mehd" })?.content,
            let length = header.byte(0) == 1 ? header.big(4, 8) : header.big32(4)
        else { return }
        let seconds = Double(length) / Double(scale)
        if seconds < 10_000_000 { duration = Int64(seconds * 1_000_000) }
    }

    /// Seconds between 1904, the epoch of the format, and 1970.
    private static let epoch: Int64 = 2_082_844_800
    /// Seconds between 1970 and 1990, before which there were no files of the format.
    private static let earliest: Int64 = 631_152_000

    private mutating func readTimes(_ box: ByteReader) {
        let isLong = box.byte(0) == 1
        guard let creation = isLong ? box.big(4, 8) : box.big32(4), let scale = box.big32(isLong ? 20 : 12), scale > 0,
            let length = isLong ? box.big(24, 8) : box.big32(16)
        else { return }
        let seconds = Double(length) / Double(scale)
        if length != 0xFFFF_FFFF, seconds < 10_000_000 { duration = Int64(seconds * 1_000_000) }
        // Some programs count from 1970. Counted from 1904, their numbers would be dates before 1970.
        let countsFrom1970 = (Self.earliest..<Self.epoch).contains(Int64(creation))
        let date = Int64(creation) - (countsFrom1970 ? 0 : Self.epoch)
        // Cameras whose clock was never set write 1904, and some programs write 1970.
        if date > 0, date < 253_402_300_799 { created = date * 1_000_000 }
    }

    /// The key of the lens without its prefix.
    private static let lens = "camera.lens_model"

    private mutating func readSize(_ track: ByteReader) {
        let parts = Self.boxes(track)
        guard pixelWidth == 0, let header = parts.first(where: { $0.name == "tkhd" })?.content,
            let media = parts.first(where: { $0.name == "mdia" })?.content,
            let handler = Self.boxes(media).first(where: { $0.name == "hdlr" })?.content, handler.has("vide", at: 8)
        else { return }
        let at = header.byte(0) == 1 ? 52 : 40
        // Fixed-point numbers of 16.16 bits. The matrix rotates by 90 degrees if its first element is zero.
        guard let width = header.big32(at + 36), let height = header.big32(at + 40), let first = header.big32(at) else {
            return
        }
        let size = (width >> 16, height >> 16)
        guard (1...65_535).contains(size.0), (1...65_535).contains(size.1) else { return }
        (pixelWidth, pixelHeight) = first == 0 ? (size.1, size.0) : size
        readRate(media)
        // iPhones write the lens into the metadata of the track, and all other values into that of the video.
        if let meta = parts.first(where: { $0.name == "meta" })?.content {
            var track = MovieHeader(contentType: contentType)
            track.readValues(meta)
            if let lens = track.values[Self.lens] { note(lens, Self.lens) }
        }
    }

    /// Sets the frame rate from the sample times and the time scale of the track.
    private mutating func readRate(_ media: ByteReader) {
        let parts = Self.boxes(media)
        guard let header = parts.first(where: { $0.name == "mdhd" })?.content,
            let scale = header.big32(header.byte(0) == 1 ? 20 : 12), scale > 0,
            let information = parts.first(where: { $0.name == "minf" })?.content,
            let samples = Self.boxes(information).first(where: { $0.name == "stbl" })?.content,
            let times = Self.boxes(samples).first(where: { $0.name == "stts" })?.content, let entries = times.big32(4)
        else { return }
        var (frames, ticks) = (0.0, 0.0)
        for entry in 0..<min(entries, 100_000) {
            guard let count = times.big32(8 + entry * 8), let each = times.big32(12 + entry * 8) else { break }
            frames += Double(count)
            ticks += Double(count) * Double(each)
        }
        if ticks > 0 { frameRate = frames * Double(scale) / ticks }
    }

    /// Reads QuickTime metadata: a list of keys, and values by the index of their key.
    mutating func readValues(_ meta: ByteReader) {
        // In QuickTime files `meta` is a plain box; in MPEG-4 files it begins with a version.
        let inner = [Self.boxes(meta), Self.boxes(meta, from: 4)].first { $0.contains { $0.name == "keys" } } ?? []
        guard let keys = inner.first(where: { $0.name == "keys" })?.content,
            let list = inner.first(where: { $0.name == "ilst" })?.content
        else { return }
        var names: [String] = []
        for box in Self.boxes(keys, from: 8) {
            names.append(box.content.text(0, box.content.count) ?? "")
        }
        let prefix = "com.apple.quicktime."
        var offset = 0
        for _ in 0..<1024 {
            guard let length = list.big32(offset), length >= 8, let number = list.big32(offset + 4),
                let content = list.slice(offset + 8, length - 8)
            else { return }
            offset += length
            guard names.indices.contains(number - 1),
                let data = Self.boxes(ByteReader(content)).first(where: { $0.name == "data" })?.content
            else { continue }
            if names[number - 1] == "com.android.capture.fps" { readCaptureRate(data) }
            if names[number - 1] == "com.android.manufacturer" { note(data.text(8, data.count - 8), "make") }
            if names[number - 1] == "com.android.model" { note(data.text(8, data.count - 8), "model") }
            guard names[number - 1].hasPrefix(prefix), data.big32(0) == 1, data.count <= 4096,
                let text = data.text(8, data.count - 8)
            else { continue }
            values[String(names[number - 1].dropFirst(prefix.count))] = text
        }
    }
}
