import PhotoModel

/// The facts of an image that its render keeps, whichever fields they are in.
struct KeptFacts {
    private let metadata: AssetMetadata
    private let caption: String?
    private let keywords: [String]

    init(_ block: borrowing MetadataBlock, _ frame: PersonReader.Frame) {
        metadata = AssetMetadataReader.read(block, frame) ?? AssetMetadata()
        caption = MetadataReader.caption(block)
        keywords = MetadataReader.keywords(block)
    }

    /// The fields with lists that may be too long for a JPEG, such as those of IPTC or of a second packet; the last
    /// one, which is shortened last, is the most important.
    var lists: [(field: String, texts: [String])] {
        [
            (MetadataFields.hierarchicalKeywords[0], metadata.hierarchicalKeywords),
            (MetadataFields.keywords[0], keywords),
        ]
    }

    /// Writes each fact that the first field of its row in ``MetadataFields`` does not have into that field, from which
    /// it is then read. Areas of faces are dropped: the render may be cropped.
    func write(to block: borrowing MetadataBlock) {
        set(block, MetadataFields.apertures, metadata.aperture)
        set(block, MetadataFields.exposureTimes, metadata.exposureTime)
        set(block, MetadataFields.focalLengths, metadata.focalLength)
        set(block, MetadataFields.imageDirections, metadata.imageDirection)
        set(block, MetadataFields.focalLengthsIn35mm, metadata.focalLengthIn35mm)
        // A larger number is in another field of EXIF, which is kept.
        if let iso = metadata.iso, iso < 65_535 { set(block, MetadataFields.sensitivities, iso) }
        if let flash = metadata.flash, block.text(MetadataFields.flashes[0]) == nil {
            block.set(MetadataFields.flashes[0], String(flash.number))
        }
        set(block, MetadataFields.captions, caption)
        set(block, MetadataFields.titles, metadata.title)
        set(block, MetadataFields.headlines, metadata.headline)
        set(block, MetadataFields.copyrights, metadata.copyright)
        set(block, MetadataFields.creators, metadata.creator)
        set(block, MetadataFields.credits, metadata.credit)
        set(block, MetadataFields.cities, metadata.city)
        set(block, MetadataFields.states, metadata.state)
        set(block, MetadataFields.countries, metadata.country)
        set(block, MetadataFields.labels, metadata.label)
        set(block, MetadataFields.software, metadata.software)
        set(block, MetadataFields.keywords[0], keywords)
        set(block, MetadataFields.hierarchicalKeywords[0], metadata.hierarchicalKeywords)
        set(block, "Xmp.iptcExt.PersonInImage", metadata.persons.map(\.name))
    }

    private func set(_ block: borrowing MetadataBlock, _ fields: [String], _ value: Double?) {
        guard let value, block.text(fields[0]).flatMap({ LocationReader.number($0[...]) }) != value else { return }
        block.set(fields[0], Rational(value).description)
    }

    private func set(_ block: borrowing MetadataBlock, _ fields: [String], _ value: Int?) {
        guard let value, block.number(fields[0]) != value else { return }
        block.set(fields[0], String(value))
    }

    private func set(_ block: borrowing MetadataBlock, _ fields: [String], _ text: String?) {
        // The first field takes precedence if it has a value. Exiv2 would read "lang=" as the language of the text.
        guard let text, block.text(fields[0]) == nil, !text.hasPrefix("lang=") else { return }
        block.set(fields[0], text)
    }

    private func set(_ block: borrowing MetadataBlock, _ field: String, _ texts: [String]) {
        guard !texts.isEmpty, block.texts(field) != texts else { return }
        block.set(field, texts)
    }
}
