/// The supported video containers. They are detected by their first bytes only, because file names can be wrong.
public struct VideoFileType: Sendable, Hashable {
    /// The structure of a container, which determines its reader.
    public enum Structure: String, Sendable, Hashable, CaseIterable {
        /// QuickTime, MPEG-4, 3GPP and the formats that are based on them.
        case isoMedia
        /// Matroska and WebM.
        case matroska
        case avi
        /// MPEG-2 transport streams, with or without the time codes of AVCHD.
        case transportStream
        /// MPEG-1 systems and MPEG-2 program streams.
        case programStream
    }

    public let structure: Structure
    /// The uniform type identifier.
    public let contentType: String

    init(_ structure: Structure, _ contentType: String) {
        self.structure = structure
        self.contentType = contentType
    }

    /// The number of bytes that ``sniff(_:)`` examines.
    public static let sniffedBytes = 512

    /// Returns the container of these bytes, or nil if they do not begin a supported one.
    public static func sniff(_ bytes: some Collection<UInt8>) -> VideoFileType? {
        let head = Array(bytes.prefix(sniffedBytes))
        if let contentType = MovieHeader.sniff(head) { return VideoFileType(.isoMedia, contentType) }
        let reader = ByteReader(head)
        if head.starts(with: [0x1A, 0x45, 0xDF, 0xA3]) {
            let isWeb = ByteReader(Array(head.prefix(64))).find("webm") != nil
            if isWeb { return VideoFileType(.matroska, "org.webmproject.webm") }
            let isMatroska = ByteReader(Array(head.prefix(64))).find("matroska") != nil
            return isMatroska ? VideoFileType(.matroska, "org.matroska.mkv") : nil
        }
        if reader.has("RIFF", at: 0), reader.has("AVI ", at: 8) { return VideoFileType(.avi, "public.avi") }
        if head.starts(with: [0, 0, 1, 0xBA]) { return VideoFileType(.programStream, "public.mpeg") }
        // Packets of 188 bytes begin with this byte; AVCHD puts a time code of four bytes before each.
        func isSynchronized(_ first: Int, _ length: Int) -> Bool {
            (0..<2).allSatisfy { reader.byte(first + $0 * length) == 0x47 }
                && (reader.byte(first + 2 * length) ?? 0x47) == 0x47
        }
        if isSynchronized(0, 188) {
            return VideoFileType(.transportStream, "public.mpeg-2-transport-stream")
        }
        if isSynchronized(4, 192) {
            return VideoFileType(.transportStream, "public.avchd-mpeg-2-transport-stream")
        }
        return nil
    }

    /// The media type, for example "video/mp4".
    public var mimeType: String {
        switch contentType {
        case "com.apple.quicktime-movie": "video/quicktime"
        case "com.apple.m4v-video": "video/x-m4v"
        case "public.3gpp": "video/3gpp"
        case "public.3gpp2": "video/3gpp2"
        case "org.webmproject.webm": "video/webm"
        case "org.matroska.mkv": "video/x-matroska"
        case "public.avi": "video/x-msvideo"
        case "public.mpeg": "video/mpeg"
        case "public.mpeg-2-transport-stream", "public.avchd-mpeg-2-transport-stream": "video/mp2t"
        default: "video/mp4"
        }
    }

    /// The names of the supported containers for error messages.
    public static let supportedNames = ["mov", "mp4", "m4v", "3gp", "mkv", "webm", "avi", "mts", "mpeg"]
}
