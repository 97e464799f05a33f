import PhotoModel

#if canImport(Glibc)
    import Glibc
#endif

/// Reads the values that people search by from the fields of ``MetadataFields``.
enum AssetMetadataReader {
    /// - Parameter frame: the stored pixels, to which areas of faces refer
    static func read(_ block: borrowing MetadataBlock, _ frame: PersonReader.Frame) -> AssetMetadata? {
        var metadata = AssetMetadata()
        metadata.aperture = first(MetadataFields.apertures) { aperture(block, $0) }
        metadata.exposureTime = first(MetadataFields.exposureTimes) { exposureTime(block, $0) }
        metadata.iso = first(MetadataFields.sensitivities) { iso(block, $0) }
        metadata.focalLength = first(MetadataFields.focalLengths) { number(block, $0, AssetMetadata.focalLengths) }
        metadata.focalLengthIn35mm = first(MetadataFields.focalLengthsIn35mm) { field in
            block.number(field).flatMap { AssetMetadata.focalLengthsIn35mm.contains($0) ? $0 : nil }
        }
        metadata.flash = first(MetadataFields.flashes) { flash(block, $0) }
        metadata.imageDirection = first(MetadataFields.imageDirections) {
            number(block, $0, AssetMetadata.directions)
        }
        metadata.title = text(block, MetadataFields.titles)
        metadata.headline = text(block, MetadataFields.headlines)
        metadata.copyright = text(block, MetadataFields.copyrights)
        metadata.creator = text(block, MetadataFields.creators)
        metadata.credit = text(block, MetadataFields.credits)
        metadata.city = text(block, MetadataFields.cities)
        metadata.state = text(block, MetadataFields.states)
        metadata.country = text(block, MetadataFields.countries)
        metadata.label = text(block, MetadataFields.labels)
        metadata.software = text(block, MetadataFields.software)
        metadata.hierarchicalKeywords = hierarchicalKeywords(block)
        metadata.persons = PersonReader.persons(block, frame)
        return metadata.isEmpty ? nil : metadata
    }

    /// Reads the metadata of a video from the values of its QuickTime keys.
    static func read(_ values: [String: String]) -> AssetMetadata? {
        var metadata = AssetMetadata()
        func text(_ keys: [String]) -> String? {
            first(keys) { key in values[String(key.dropFirst(MetadataFields.quickTime.count))].flatMap(clipped) }
        }
        metadata.title = text(MetadataFields.videoTitles)
        metadata.copyright = text(MetadataFields.videoCopyrights)
        metadata.creator = text(MetadataFields.videoCreators)
        metadata.software = text(MetadataFields.videoSoftware)
        metadata.imageDirection = text(MetadataFields.videoDirections).flatMap { text in
            Double(text).flatMap { AssetMetadata.directions.contains($0) ? $0 : nil }
        }
        return metadata.isEmpty ? nil : metadata
    }

    private static func first<Value>(_ fields: [String], _ read: (String) -> Value?) -> Value? {
        for field in fields { if let value = read(field) { return value } }
        return nil
    }

    // MARK: Numbers

    private static func number(
        _ block: borrowing MetadataBlock,
        _ field: String,
        _ range: ClosedRange<Double>
    ) -> Double? {
        guard let text = block.text(field), let number = LocationReader.number(text[...].prefix { $0 != " " }),
            range.contains(number)
        else { return nil }
        return number
    }

    /// Reads the f-number. `ApertureValue` is a logarithm (APEX), rounded to two digits. 0, which would be f/1, means
    /// unknown.
    private static func aperture(_ block: borrowing MetadataBlock, _ field: String) -> Double? {
        guard field.hasSuffix("ApertureValue") else { return number(block, field, AssetMetadata.apertures) }
        guard let value = number(block, field, 0...20), value != 0 else { return nil }
        return (exp2(value / 2) * 100).rounded() / 100
    }

    /// Reads the exposure time. `ShutterSpeedValue` is a logarithm (APEX), rounded to 1/n seconds or a tenth of a
    /// second. 0, which would be a second, means unknown.
    private static func exposureTime(_ block: borrowing MetadataBlock, _ field: String) -> Double? {
        guard field.hasSuffix("ShutterSpeedValue") else { return number(block, field, AssetMetadata.exposureTimes) }
        guard let value = number(block, field, -15...30), value != 0 else { return nil }
        let seconds = exp2(-value)
        return seconds < 0.3 ? 1 / (1 / seconds).rounded() : (seconds * 10).rounded() / 10
    }

    /// Reads the sensitivity. 65535 means that it does not fit into the field.
    private static func iso(_ block: borrowing MetadataBlock, _ field: String) -> Int? {
        let number = field.hasPrefix("Xmp.") ? block.texts(field).first.flatMap { Int($0) } : block.number(field)
        guard let number, number != 65_535, AssetMetadata.sensitivities.contains(number) else { return nil }
        return number
    }

    /// Reads whether the flash fired; the lowest bit of EXIF's number is then 1.
    private static func flash(_ block: borrowing MetadataBlock, _ field: String) -> Flash? {
        if field.hasPrefix("Xmp.") {
            switch block.text(field)?.lowercased() {
            case "true": return .fired
            case "false": return .notFired
            default: return nil
            }
        }
        return block.number(field).map { $0 & 1 != 0 ? .fired : .notFired }
    }

    // MARK: Texts

    private static func text(_ block: borrowing MetadataBlock, _ fields: [String]) -> String? {
        for field in fields {
            let text =
                switch field {
                case "Xmp.dc.title", "Xmp.dc.rights": block.localizedText(field)
                case "Xmp.dc.creator", "Iptc.Application2.Byline": joined(block.texts(field))
                case "Exif.Image.XPTitle", "Exif.Image.XPAuthor": block.windowsText(field)
                default: block.text(field)
                }
            if let text = text.flatMap(clipped) { return text }
        }
        return nil
    }

    private static func joined(_ texts: [String]) -> String? {
        texts.isEmpty ? nil : texts.prefix(64).joined(separator: "; ")
    }

    /// Returns at most ``AssetMetadata/maxTextBytes`` bytes, cut at a character; nil for an empty text.
    static func clipped(_ text: String) -> String? {
        guard text.utf8.count > AssetMetadata.maxTextBytes else { return text.isEmpty ? nil : text }
        var result = ""
        var bytes = 0
        for character in text {
            bytes += character.utf8.count
            guard bytes <= AssetMetadata.maxTextBytes else { break }
            result.append(character)
        }
        return result.isEmpty ? nil : result
    }

    /// Reads the keywords of all fields. Lightroom separates levels by "|", the others by "/".
    private static func hierarchicalKeywords(_ block: borrowing MetadataBlock) -> [String] {
        var seen: Set<String> = []
        var result: [String] = []
        for field in MetadataFields.hierarchicalKeywords {
            for word in block.texts(field) {
                let path = field == "Xmp.lr.hierarchicalSubject" ? word : word.replacing("/", with: "|")
                guard result.count < AssetMetadata.maxKeywords, let path = clipped(path), seen.insert(path).inserted
                else { continue }
                result.append(path)
            }
        }
        return result
    }
}
