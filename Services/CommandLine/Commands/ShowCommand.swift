import ArgumentParser
import Contracts
import Hosting
import JSONValue
import PhotoClient
import PhotoModel

/// `safelight show`
struct ShowCommand: LibraryCommand {
    static let configuration = CommandConfiguration(
        commandName: "show",
        abstract: "Show all metadata of assets: dates, location, camera, files, albums."
    )

    @OptionGroup var assets: AssetArguments

    @Flag(
        help: ArgumentHelp(
            "Show the images too, in a terminal that supports it: "
                + "kitty, Ghostty, iTerm2, WezTerm, foot, xterm with Sixel."
        )
    )
    var picture = false

    @Option(
        help: ArgumentHelp(
            "The protocol of --picture. Default: detected by querying the terminal.",
            valueName: "protocol"
        )
    )
    var graphics: TerminalGraphics?

    @OptionGroup var client: ClientOptions

    var services: [ServiceName] { picture ? [.catalog, .thumbnailer] : [.catalog] }

    func validate() throws {
        guard picture || graphics == nil else { throw ValidationError("--graphics needs --picture") }
        guard !picture || !client.json else { throw ValidationError("--picture and --json exclude each other") }
    }

    func run(in library: PhotoLibrary, output: Output) async throws {
        let images = picture ? try TerminalImages(graphics, output) : nil
        var named = NamedAssets(try await assets.read(in: library), in: library)
        var albumTitles = AlbumTitles(library: library)
        var isFirst = true
        while let entry = try await named.next() {
            guard let asset = entry.asset else { throw NamedAssets.noAsset(entry.id) }
            if output.isJSON {
                var json = asset.json.objectValue ?? [:]
                if !entry.quarantined.isEmpty { json["quarantined"] = .array(entry.quarantined.map(\.json)) }
                try output.json(.object(json))
                continue
            }
            if !isFirst { try output.line("") }
            isFirst = false
            try await images?.show(asset, in: library)
            let albums = try await albumTitles.titles(of: asset)
            let facts = Self.facts(asset, albums: albums, quarantined: entry.quarantined)
            let width = facts.map(\.name.count).max() ?? 0
            for (name, value) in facts {
                let padding = String(repeating: " ", count: width - name.count)
                try output.line("\(output.bold(name))\(padding)  \(value.printable)")
            }
        }
    }

    /// Returns the date of capture, "2024-05-01 14:30:00 +02:00", and the source of values that were derived.
    private static func captureDate(_ asset: Asset) -> String? {
        guard let date = asset.creationDate else { return nil }
        let notes =
            (asset.hasOnlyModificationDate ? ["the file's last change; it has no date of capture"] : [])
            + (asset.isCreationOffsetDerived ? ["time zone of the location"] : [])
        return QuantityFormatter.exactTime(date, offset: asset.creationOffset)
            + (notes.isEmpty ? "" : " (\(notes.joined(separator: "; ")))")
    }

    /// Returns for example "f/2.8, 1/250 s, ISO 400, 50 mm (75 mm in 35 mm format), flash fired"
    private static func exposure(_ metadata: AssetMetadata) -> String {
        var parts: [String] = []
        if let aperture = metadata.aperture { parts.append("f/\(short(aperture))") }
        if let time = metadata.exposureTime {
            let fraction = Rational(time)
            let isUnitFraction = fraction.numerator == 1 && fraction.denominator > 1
            let rounded = time < 0.3 ? "1/\(Int((1 / time).rounded()))" : short(time)
            parts.append((isUnitFraction ? fraction.description : rounded) + " s")
        }
        if let iso = metadata.iso { parts.append("ISO \(iso)") }
        let equivalent = metadata.focalLengthIn35mm.map { "\($0) mm in 35 mm format" }
        if let length = metadata.focalLength {
            parts.append("\(short(length)) mm" + (equivalent.map { " (\($0))" } ?? ""))
        } else if let equivalent {
            parts.append(equivalent)
        }
        if let flash = metadata.flash { parts.append(flash == .fired ? "flash fired" : "no flash") }
        return parts.joined(separator: ", ")
    }

    /// Returns a number with at most two digits after the point.
    private static func short(_ number: Double) -> String {
        let rounded = (number * 100).rounded() / 100
        return rounded == rounded.rounded(.towardZero) ? String(Int(rounded)) : String(rounded)
    }

    /// Returns the metadata of the asset as labels and values, the most important first. Unknown values are omitted.
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
        add("taken", captureDate(asset))
        add("location", asset.location.map(QuantityFormatter.location))
        add("camera", [asset.cameraMake, asset.cameraModel].compactMap { $0 }.joined(separator: " "))
        add("lens", asset.lensModel)
        let metadata = asset.metadata ?? AssetMetadata()
        add("exposure", exposure(metadata))
        add("direction", metadata.imageDirection.map { "\(short($0))°" })
        add("title", metadata.title)
        add("headline", metadata.headline)
        add("caption", asset.caption)
        add("keywords", asset.keywords.joined(separator: ", "))
        add("hierarchical keywords", metadata.hierarchicalKeywords.joined(separator: ", "))
        add("persons", metadata.persons.map(\.name).joined(separator: ", "))
        add("place", [metadata.city, metadata.state, metadata.country].compactMap { $0 }.joined(separator: ", "))
        add("creator", metadata.creator)
        add("copyright", metadata.copyright)
        add("credit", metadata.credit)
        add("label", metadata.label)
        add("software", metadata.software)
        if asset.rating > 0 { add("rating", "\(asset.rating) of 5") }
        add("flags", (asset.isFavorite ? ["favorite"] : []).joined() + (asset.isHidden ? " hidden" : ""))
        add("albums", albums.joined(separator: ", "))
        let smart = SmartAlbum.allCases.filter { $0 != .userLibrary && $0 != .generic && $0.contains(asset) }.map(
            \.texts.title
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
        add("original", asset.originalResourceChoice.map { "\($0.rawValue), of a RAW and a compressed file" })
        if let format = asset.adjustmentFormatIdentifier {
            let date = asset.adjustmentDate.map { ", " + QuantityFormatter.time($0) } ?? ""
            add("edited with", "\(format) \(asset.adjustmentFormatVersion ?? "")\(date)")
        }
        add("added", QuantityFormatter.time(asset.addedDate))
        add("changed", QuantityFormatter.time(asset.modificationDate))
        add("in the trash", asset.trashedDate.map { "since \(QuantityFormatter.time($0))" })
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
                    + "\(QuantityFormatter.time(entry.date))); `safelight quarantine lift \(asset.id)` releases it"
            )
        }
        return facts
    }
}

/// A cache of the titles of albums.
private struct AlbumTitles {
    let library: PhotoLibrary
    private var known: [ObjectID: String] = [:]

    init(library: PhotoLibrary) { self.library = library }

    /// Returns the titles of the albums that contain an asset.
    mutating func titles(of asset: Asset) async throws -> [String] {
        let ids = asset.memberships.prefix(1000).map(\.collection)
        let unknown = ids.filter { known[$0] == nil }
        if !unknown.isEmpty {
            let fetch = try Fetch(.collectionIDs(IDList(unknown))).wireForm
            for album in try await library.collections(fetch, count: unknown.count).collections {
                known[album.id] = album.title ?? album.id.text
            }
        }
        return ids.compactMap { known[$0] }
    }
}
