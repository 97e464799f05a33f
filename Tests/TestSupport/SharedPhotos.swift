public import Foundation

/// The folder of real photos beside the project, `../shared/photos`, or at `SAFELIGHT_PHOTOS`.
///
/// It is not part of the project: tests that use it are skipped if it is missing (see ``Needed``).
public enum SharedPhotos {
    /// The folder; nil if it is missing.
    public static let folder: URL? = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let named = ProcessInfo.processInfo.environment["SAFELIGHT_PHOTOS"].map { URL(filePath: $0) }
        let folder = named ?? root.deletingLastPathComponent().appending(path: "shared/photos")
        return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
    }()

    /// Returns all files below the folder with one of the extensions, sorted by path; empty if the folder is missing.
    public static func files(_ fileExtensions: [String], below path: String = "") -> [URL] {
        guard let folder else { return [] }
        let start = path.isEmpty ? folder : folder.appending(path: path)
        let files = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil)?.compactMap {
            $0 as? URL
        }
        return (files ?? []).filter { fileExtensions.contains($0.pathExtension.lowercased()) }
            .sorted { $0.path < $1.path }
    }

    /// Returns a file's bytes; empty if it cannot be read.
    public static func bytes(_ url: URL) -> [UInt8] { (try? Data(contentsOf: url)).map { Array($0) } ?? [] }

    /// Returns a file's path relative to the folder.
    public static func name(_ url: URL) -> String {
        folder.map { String(url.path.dropFirst($0.path.count + 1)) } ?? url.lastPathComponent
    }
}
