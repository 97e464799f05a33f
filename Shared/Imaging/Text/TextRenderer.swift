import CText
import Foundation
import Synchronization

/// Draws lines of text with the fonts of the machine. raqm orders and shapes a line, FreeType draws it.
///
/// The fonts are opened once, by ``ImagingLibrary/start(threads:)``, because a worker may not open files later.
enum TextRenderer {
    /// The fonts in the order in which a character is looked up, with the Debian packages that install them.
    static let fonts: [(path: String, package: String)] = [
        ("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf", "fonts-dejavu-core"),
        ("/usr/share/fonts/truetype/droid/DroidSansFallbackFull.ttf", "fonts-droid-fallback"),
        ("/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc", "fonts-noto-cjk"),
    ]

    /// The maximum number of pixels per em.
    private static let maxSize = 32_767.0

    /// A drawn line of text.
    struct Coverage {
        /// The coverage of each pixel, 0...255, row by row.
        var pixels: [UInt8]
        var width: Int
        var height: Int
        /// The column of the first pixel, from the origin of the line.
        var left: Int
        /// The row of the first pixel, counted upwards from the baseline.
        var top: Int
    }

    /// FreeType's faces store the size and the glyph of a call, so only one call at a time may use them.
    private struct OpenFonts: @unchecked Sendable {
        let pointer: OpaquePointer?
    }

    private static let opened: Mutex<OpenFonts> = {
        let paths = fonts.map { strdup($0.path) }
        defer { for path in paths { free(path) } }
        return Mutex(OpenFonts(pointer: safelight_fonts_open(paths.map { UnsafePointer($0) }, paths.count)))
    }()

    /// Opens the fonts.
    static func openFonts() { opened.withLock { _ in } }

    /// Returns the characters of a text that no font has, each once, in their order.
    static func missing(in text: String) -> [Unicode.Scalar] {
        opened.withLock { fonts in
            var missing: [Unicode.Scalar] = []
            for scalar in text.unicodeScalars where !missing.contains(scalar) {
                let hasGlyph = fonts.pointer.map { safelight_fonts_have($0, scalar.value) != 0 } ?? false
                if !hasGlyph { missing.append(scalar) }
            }
            return missing
        }
    }

    /// Draws a line.
    ///
    /// - Parameters:
    ///   - text: characters that no font has are drawn as the first font's empty box
    ///   - size: pixels per em, at least 1
    /// - Returns: the line; nil if no glyph of the text is visible
    /// - Throws: `invalidOptions` if no font is installed or the line would be too large
    static func draw(_ text: String, size: Double) throws(ImagingError) -> Coverage? {
        var coverage = safelight_coverage()
        let status: safelight_text_status? = opened.withLock { fonts in
            guard let pointer = fonts.pointer else { return nil }
            let scalars = text.unicodeScalars.map(\.value)
            return safelight_text_draw(pointer, scalars, scalars.count, size, &coverage)
        }
        guard let status else {
            throw .invalidOptions("text cannot be drawn: no font is installed; install \(fonts[0].package)")
        }
        defer { free(coverage.pixels) }
        switch status {
        case SAFELIGHT_TEXT_OK: break
        case SAFELIGHT_TEXT_TOO_LARGE:
            throw .invalidOptions("the text is longer than 32,767 pixels; give a shorter one or a smaller size")
        default: throw .invalidOptions("the text cannot be drawn")
        }
        guard let pixels = coverage.pixels else { return nil }
        let (width, height) = (Int(coverage.width), Int(coverage.height))
        return Coverage(
            pixels: Array(UnsafeBufferPointer(start: pixels, count: width * height)),
            width: width,
            height: height,
            left: Int(coverage.left),
            top: Int(coverage.top)
        )
    }

    /// Draws a line at the given width, or narrower if it would be too high.
    ///
    /// - Returns: the line, whose width is `width` except for rounding, or less if the height is the limit; nil if no
    ///   glyph of the text is visible
    /// - Throws: `invalidOptions` with the characters that no font has
    static func draw(_ text: String, width: Int, height: Int) throws(ImagingError) -> Coverage? {
        let missing = missing(in: text)
        guard missing.isEmpty else {
            let names = missing.prefix(8).map { "\($0) (U+\(String($0.value, radix: 16, uppercase: true)))" }
            throw .invalidOptions(
                "no installed font has \(names.joined(separator: ", ")); leave it out, or install one of "
                    + fonts.map(\.package).joined(separator: ", ")
            )
        }
        // Unhinted lines scale with their size, so the size is computed from a trial line. For a long text the trial is
        // smaller, so that many wide characters fit.
        let trial = min(256, 12_800 / Double(text.unicodeScalars.count))
        guard let measured = try draw(text, size: trial) else { return nil }
        let ratio = min(Double(width) / Double(measured.width), Double(height) / Double(measured.height))
        return try draw(text, size: min(maxSize, max(1, trial * ratio)))
    }
}
