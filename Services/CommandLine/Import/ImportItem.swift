import PhotoModel
import SystemPackage

/// Files that are taken in as one asset, by their paths.
struct ImportItem: Sendable, Hashable {
    var main: FilePath
    /// The raw file beside a picture.
    var alternate: FilePath?
    /// The film of a Live Photo.
    var pairedVideo: FilePath?
    var sidecar: FilePath?

    init(_ main: FilePath, alternate: FilePath? = nil, pairedVideo: FilePath? = nil, sidecar: FilePath? = nil) {
        self.main = main
        self.alternate = alternate
        self.pairedVideo = pairedVideo
        self.sidecar = sidecar
    }

    /// The files with what they are to the asset, the original first.
    var files: [(type: ResourceType, path: FilePath)] {
        var files: [(ResourceType, FilePath)] = [(Self.type(of: main), main)]
        if let alternate { files.append((.alternatePhoto, alternate)) }
        if let pairedVideo { files.append((.pairedVideo, pairedVideo)) }
        return files
    }

    /// Each file as an asset of its own: for files that turn out not to belong together.
    var apart: [ImportItem] { files.map { ImportItem($0.path, sidecar: sidecar) } }

    /// By its name; the catalog looks at the bytes.
    private static func type(of path: FilePath) -> ResourceType {
        let films = FileGrouping.films.union(["m4v", "3gp", "qt"])
        return films.contains(path.extension?.lowercased() ?? "") ? .video : .photo
    }

    /// The items of a folder: names that are UTF-8 are grouped, others stand alone.
    static func items(in folder: FilePath, _ files: [FilePath], sidecars: [FilePath]) -> [ImportItem] {
        var paths: [String: FilePath] = [:]
        var names: [String] = []
        var others: [ImportItem] = []
        for path in files + sidecars {
            guard path.exactText != nil, let name = path.lastComponent?.string else {
                if files.contains(path) { others.append(ImportItem(path)) }
                continue
            }
            paths[name] = path
            names.append(name)
        }
        let items = FileGrouping.groups(names).compactMap { group -> ImportItem? in
            guard let main = paths[group.main] else { return nil }
            return ImportItem(
                main,
                alternate: group.alternate.flatMap { paths[$0] },
                pairedVideo: group.pairedVideo.flatMap { paths[$0] },
                sidecar: group.sidecar.flatMap { paths[$0] }
            )
        }
        return items + others
    }
}
