import CJPEG
import ImageFormats

extension MetadataReader {
    /// The processor time, in milliseconds, and the memory, in bytes, that a check may use. Beyond them the result is
    /// unknown.
    private static let damageLimits: (milliseconds: UInt32, memory: Int) = (2000, 512 << 20)

    /// Returns a readable description of the damage to an image whose file is not truncated.
    ///
    /// An image beyond ``ImageBounds`` cannot be shown. Of the others only JPEG is checked. All its coded data is
    /// parsed up to the first damage, which takes about eight milliseconds per megabyte; no pixels are computed.
    /// Harmless additions and omissions of cameras and programs are not damage.
    ///
    /// - Returns: `nil` if no damage is found, if the limits are exceeded, or for another format
    public static func damage(of bytes: [UInt8]) -> String? {
        if let problem = (try? ImageHeader.read(bytes))?.problem { return problem }
        guard ImageFormat.sniff(bytes) == .jpeg else { return nil }
        var report = safelight_jpeg_report()
        safelight_jpeg_check(bytes, bytes.count, damageLimits.milliseconds, damageLimits.memory, &report)
        let message = withUnsafeBytes(of: report.message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        return switch report.state {
        case SAFELIGHT_JPEG_DAMAGED:
            "damaged from row \(report.row) of \(report.height) on (\(message))"
        case SAFELIGHT_JPEG_UNREADABLE: "the image cannot be read (\(message))"
        default: nil
        }
    }
}
