public import Foundation

/// The folder of real photographs beside the project, `../shared/photos`, or where `SAFELIGHT_PHOTOS` points.
///
/// It is no part of the project: tests that use it say so and pass when it is not there.
public enum SharedPhotos {
    public static let folder: URL? = {
        let root = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .deletingLastPathComponent()
        let named = ProcessInfo.processInfo.environment["SAFELIGHT_PHOTOS"].map { URL(filePath: $0) }
        let folder = named ?? root.deletingLastPathComponent().appending(path: "shared/photos")
        return FileManager.default.fileExists(atPath: folder.path) ? folder : nil
    }()

    /// All files below the folder with one of these endings, sorted by path; empty without the folder.
    public static func files(_ endings: [String], below path: String = "") -> [URL] {
        guard let folder else { return [] }
        let start = path.isEmpty ? folder : folder.appending(path: path)
        let files = FileManager.default.enumerator(at: start, includingPropertiesForKeys: nil)?.compactMap {
            $0 as? URL
        }
        return (files ?? []).filter { endings.contains($0.pathExtension.lowercased()) }.sorted { $0.path < $1.path }
    }

    public static func bytes(_ url: URL) -> [UInt8] { (try? Data(contentsOf: url)).map { Array($0) } ?? [] }

    /// The path below the folder.
    public static func name(_ url: URL) -> String {
        folder.map { String(url.path.dropFirst($0.path.count + 1)) } ?? url.lastPathComponent
    }
}
