import ArgumentParser
import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight show`
struct ShowCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show all metadata of assets: dates, location, camera, files, albums."
    )

    @OptionGroup var assets: Identifiers

    @OptionGroup var client: ClientOptions

    func run(in library: PhotoLibrary, output: Output) async throws {
        for (index, id) in try assets.read().enumerated() {
            let page = try await library.assets([id])
            guard let asset = page.assets.first else {
                throw CommandFailure(message: "there is no asset \(id)", name: ErrorCode.identifierNotFound.rawValue)
            }
            if output.isJSON {
                var json = asset.json.objectValue ?? [:]
                if !page.quarantined.isEmpty { json["quarantined"] = .array(page.quarantined.map(\.json)) }
                try output.json(.object(json))
                continue
            }
            if index > 0 { try output.line("") }
            let albums = try await Self.titles(of: asset, in: library)
            let facts = Self.facts(asset, albums: albums, quarantined: page.quarantined)
            let width = facts.map(\.name.count).max() ?? 0
            for (name, value) in facts {
                let padding = String(repeating: " ", count: width - name.count)
                try output.line("\(output.bold(name))\(padding)  \(value.printable)")
            }
        }
    }

    private static func titles(of asset: Asset, in library: PhotoLibrary) async throws -> [String] {
        let ids = asset.memberships.prefix(1000).map(\.collection)
        guard !ids.isEmpty else { return [] }
        let page = try await library.collections(try Fetch(.collectionIDs(IDList(ids))).wireForm, count: ids.count)
        return page.collections.map { $0.title ?? $0.id.text }
    }

    /// Returns the metadata of the asset as labels and values, the most looked-for first. Unknown values are omitted.
    static func facts(
        _ asset: Asset,
        albums: [String],
        quarantined: [QuarantinedResource] = []
    ) -> [(name: String, value: String)] {
        var facts: [(name: String, value: String)] = [("id", asset.id.text)]
        func add(_ name: String, _ value: String?) {
            if let value, !value.isEmpty { facts.append((name, value)) }
        }
        add("name", asset.originalFilename)
        add("kind", ([asset.mediaType.rawValue] + asset.mediaSubtypes.names).joined(separator: ", "))
        add("format", asset.contentType)
        add("size", "\(asset.pixelWidth) x \(asset.pixelHeight) pixels")
        if asset.duration > 0 { add("duration", QuantityFormatter.clock(.microseconds(asset.duration))) }
        add("taken", asset.creationDate.map { QuantityFormatter.moment($0, offset: asset.creationOffset) })
        add("location", asset.location.map(QuantityFormatter.location))
        add("camera", [asset.cameraMake, asset.cameraModel].compactMap { $0 }.joined(separator: " "))
        add("lens", asset.lensModel)
        add("caption", asset.caption)
        add("keywords", asset.keywords.joined(separator: ", "))
        if asset.rating > 0 { add("rating", "\(asset.rating) of 5") }
        add("flags", (asset.isFavorite ? ["favorite"] : []).joined() + (asset.isHidden ? " hidden" : ""))
        add("albums", albums.joined(separator: ", "))
        let smart = SmartAlbum.allCases.filter { $0 != .userLibrary && $0 != .generic && $0.contains(asset) }.map(
            \.words.title
        )
        add("smart albums", smart.joined(separator: ", "))
        add("moment", asset.moment.map { "\($0.title)  \($0.id)" })
        add(
            "burst",
            asset.burstIdentifier.map { burst in
                let parts =
                    [burst] + (asset.representsBurst ? ["representative"] : []) + asset.burstSelectionTypes.names
                return parts.joined(separator: ", ")
            }
        )
        add("original", asset.originalResourceChoice.map { "\($0.rawValue), of a RAW and a compressed one" })
        if let format = asset.adjustmentFormatIdentifier {
            let date = asset.adjustmentDate.map { ", " + QuantityFormatter.moment($0) } ?? ""
            add("edited with", "\(format) \(asset.adjustmentFormatVersion ?? "")\(date)")
        }
        add("added", QuantityFormatter.moment(asset.addedDate))
        add("changed", QuantityFormatter.moment(asset.modificationDate))
        add("in the trash", asset.trashedDate.map { "since \(QuantityFormatter.moment($0))" })
        add("revision", "\(asset.revision), content \(asset.contentRevision)")
        for resource in asset.resources {
            let pixels = resource.pixelWidth > 0 ? ", \(resource.pixelWidth) x \(resource.pixelHeight)" : ""
            add(
                "file",
                "\(resource.type.rawValue): \(resource.contentType), \(QuantityFormatter.bytes(resource.size))\(pixels), "
                    + "sha256 \(resource.digest)"
            )
        }
        for (type, damage) in asset.resources.compactMap({ resource in resource.damage.map { (resource.type, $0) } }) {
            add("damage", "\(type.rawValue): \(damage); the file is kept unchanged")
        }
        for entry in quarantined {
            add(
                "quarantined",
                "\(entry.reason) (\(entry.service), \(QuantityFormatter.count(entry.failures, "time")), last "
                    + "\(QuantityFormatter.moment(entry.date))); `safelight quarantine lift \(asset.id)` releases it"
            )
        }
        return facts
    }
}
