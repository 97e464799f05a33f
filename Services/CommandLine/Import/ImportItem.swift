import PhotoModel
import SystemPackage

/// The paths of files that are imported as one asset.
struct ImportItem: Sendable, Hashable {
    var main: FilePath
    /// The raw file of a photo.
    var alternate: FilePath?
    /// The video of a Live Photo.
    var pairedVideo: FilePath?
    /// The sidecar of the asset.
    private(set) var sidecar: FilePath?
    /// The sidecar of each file that has one, for files that turn out not to belong together; nil if all have that of
    /// the asset.
    private var separateSidecars: [FilePath: FilePath]?

    init(_ main: FilePath, alternate: FilePath? = nil, pairedVideo: FilePath? = nil, sidecar: FilePath? = nil) {
        self.main = main
        self.alternate = alternate
        self.pairedVideo = pairedVideo
        self.sidecar = sidecar
    }

    /// The files with their resource types, the original first.
    var files: [(type: ResourceType, path: FilePath)] {
        var files: [(ResourceType, FilePath)] = [(Self.type(of: main), main)]
        if let alternate { files.append((.alternatePhoto, alternate)) }
        if let pairedVideo { files.append((.pairedVideo, pairedVideo)) }
        return files
    }

    /// One item for each file, for files that turn out not to belong together.
    var separateItems: [ImportItem] {
        files.map { file in
            if let separateSidecars { return ImportItem(file.path, sidecar: separateSidecars[file.path]) }
            return ImportItem(file.path, sidecar: sidecar)
        }
    }

    /// The sidecars of the asset and of its files.
    var sidecars: Set<FilePath> {
        var sidecars = Set(separateSidecars.map { Array($0.values) } ?? [])
        if let sidecar { sidecars.insert(sidecar) }
        return sidecars
    }

    /// The item without the sidecar of the asset, which cannot be read.
    var withoutSidecar: ImportItem {
        var item = self
        item.separateSidecars = separateSidecars?.filter { $0.value != sidecar }
        item.sidecar = nil
        return item
    }

    /// Returns the type by the file extension; the catalog checks the content.
    private static func type(of path: FilePath) -> ResourceType {
        let videoExtensions = FileGrouping.videoExtensions.union(["m4v", "3gp", "qt"])
        return videoExtensions.contains(path.extension?.lowercased() ?? "") ? .video : .photo
    }

    /// Groups the files of a folder into items. Files whose names are not UTF-8 become items of their own.
    static func items(in folder: FilePath, _ files: [FilePath], sidecars: [FilePath]) -> [ImportItem] {
        // The key is the bytes of a name, because texts with different bytes can be equal.
        var paths: [[UInt8]: FilePath] = [:]
        func lookUp(_ name: String) -> FilePath? { paths[Array(name.utf8)] }
        var names: [String] = []
        var others: [ImportItem] = []
        for path in files + sidecars {
            guard path.exactText != nil, let name = path.lastComponent?.string else {
                if files.contains(path) { others.append(ImportItem(path)) }
                continue
            }
            paths[Array(name.utf8)] = path
            names.append(name)
        }
        let sidecarNames = FileGrouping.Sidecars(among: names)
        let items = FileGrouping.groups(names).compactMap { group -> ImportItem? in
            guard let main = lookUp(group.main) else { return nil }
            var item = ImportItem(
                main,
                alternate: group.alternate.flatMap(lookUp),
                pairedVideo: group.pairedVideo.flatMap(lookUp),
                sidecar: group.sidecar.flatMap(lookUp)
            )
            guard item.files.count > 1, item.sidecar != nil else { return item }
            var separate: [FilePath: FilePath] = [:]
            for name in [group.main, group.alternate, group.pairedVideo] {
                guard let name, let file = lookUp(name) else { continue }
                separate[file] = sidecarNames.sidecar(of: name).flatMap(lookUp)
            }
            item.separateSidecars = separate
            return item
        }
        return items + others
    }
}
