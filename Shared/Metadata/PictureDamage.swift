import CJPEG
import PictureFormats

extension MetadataReader {
    /// Processor time that is spent on the question, in milliseconds, and memory in bytes; beyond them it stays open.
    private static let damageLimits: (milliseconds: UInt32, memory: Int) = (2000, 512 << 20)

    /// What of a picture is lost, though the file has its beginning and its end: a sentence for people.
    ///
    /// Only JPEG is looked at. All its coded data is read as far as the first damage, which costs about eight milliseconds
    /// for each megabyte; no pixel is made. What cameras and programs add or leave out without harm is no damage.
    ///
    /// - Returns: `nil` where nothing is lost, nobody can say, or it is another format
    public static func damage(of bytes: [UInt8]) -> String? {
        guard PictureKind.sniff(bytes) == .jpeg else { return nil }
        var report = safelight_jpeg_report()
        safelight_jpeg_check(bytes, bytes.count, damageLimits.milliseconds, damageLimits.memory, &report)
        let message = withUnsafeBytes(of: report.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return switch report.state {
        case SAFELIGHT_JPEG_DAMAGED:
            "damaged from row \(report.row) of \(report.height) on (\(message))"
        case SAFELIGHT_JPEG_UNREADABLE: "its picture cannot be read (\(message))"
        default: nil
        }
    }
}
