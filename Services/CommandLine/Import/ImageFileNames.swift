import Glibc
import SystemPackage

/// Recognizes files that are clearly not images by their names and first bytes.
enum ImageFileNames {
    private static let images: Set<String> = [
        "jpg", "jpeg", "jpe", "jfif", "png", "gif", "tif", "tiff", "heic", "heif", "hif", "avif", "webp", "bmp", "jp2",
        "jxl", "dng", "cr2", "cr3", "nef", "nrw", "arw", "sr2", "srf", "raf", "orf", "rw2", "pef", "srw", "3fr", "iiq",
        "erf", "psd", "psb", "tga", "ico", "pnm", "pbm", "pgm", "ppm", "pam", "mov", "mp4",
        "m4v", "3gp", "3g2", "qt", "mkv", "webm", "avi", "mts", "m2ts", "mpg", "mpeg",
    ]

    private static let others: Set<String> = [
        "txt", "md", "rst", "html", "htm", "css", "js", "json", "xml", "xmp", "aae", "yaml", "yml", "csv", "tsv", "log",
        "ini", "cfg", "conf", "db", "sqlite", "py", "sh", "swift", "c", "h", "pdf", "doc", "docx", "odt", "xls", "xlsx",
        "ppt", "pptx", "zip", "gz", "bz2", "xz", "tar", "7z", "rar", "exe", "dll", "so", "mp3", "wav", "flac", "m4a",
        "ogg", "url", "lnk", "part", "tmp", "bak", "thm", "lrprev", "lrcat",
    ]

    /// Returns true if the file is clearly not an image: by its extension, or because it starts with text.
    static func isClearlyOther(_ path: FilePath) -> Bool {
        let fileExtension = path.extension?.lowercased() ?? ""
        if images.contains(fileExtension) { return false }
        return others.contains(fileExtension) || startsWithText(path)
    }

    private static func startsWithText(_ path: FilePath) -> Bool {
        guard let file = try? FileDescriptor.open(path, .readOnly, options: [.noFollow, .nonBlocking]) else {
            return false
        }
        defer { try? file.close() }
        var bytes = [UInt8](repeating: 0, count: 256)
        guard let count = try? bytes.withUnsafeMutableBytes({ try file.read(into: $0) }) else { return false }
        return isText(bytes[..<count])
    }

    /// Returns true if there are no control characters other than white space. No image format starts like that.
    static func isText(_ bytes: some Collection<UInt8>) -> Bool {
        bytes.allSatisfy { $0 >= 0x20 && $0 != 0x7F || (0x09...0x0D).contains($0) }
    }
}
