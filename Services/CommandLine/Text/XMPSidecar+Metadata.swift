import PhotoModel

extension XMPSidecar {
    /// Returns the simple properties of the metadata.
    static func attributes(of metadata: AssetMetadata) -> [(String, String)] {
        let values: [(String, String?)] = [
            ("exif:FNumber", metadata.aperture.map { Rational($0).description }),
            ("exif:ExposureTime", metadata.exposureTime.map { Rational($0).description }),
            ("exif:FocalLength", metadata.focalLength.map { Rational($0).description }),
            ("exif:FocalLengthIn35mmFilm", metadata.focalLengthIn35mm.map(String.init)),
            ("exif:GPSImgDirection", metadata.imageDirection.map { Rational($0).description }),
            ("exifEX:PhotographicSensitivity", metadata.iso.map(String.init)),
            ("photoshop:Headline", metadata.headline), ("photoshop:Credit", metadata.credit),
            ("photoshop:City", metadata.city), ("photoshop:State", metadata.state),
            ("photoshop:Country", metadata.country), ("xmp:Label", metadata.label),
            ("xmp:CreatorTool", metadata.software),
        ]
        return values.compactMap { name, value in value.map { (name, $0) } }
    }

    /// Returns the properties with languages, lists and structures, as elements.
    ///
    /// The areas of faces are those of the original, and wrong for a render that was cropped or rotated.
    static func elements(of asset: Asset, isRender: Bool) -> [String] {
        guard let metadata = asset.metadata else { return [] }
        var elements: [String] = []
        if let title = metadata.title { elements.append(alternatives("dc:title", title)) }
        if let copyright = metadata.copyright { elements.append(alternatives("dc:rights", copyright)) }
        if let creator = metadata.creator { elements.append(list("dc:creator", "Seq", [creator])) }
        if let flash = metadata.flash {
            let hasFired = flash == .fired ? "True" : "False"
            elements.append("<exif:Flash rdf:parseType=\"Resource\"><exif:Fired>\(hasFired)</exif:Fired></exif:Flash>")
        }
        if !metadata.hierarchicalKeywords.isEmpty {
            elements.append(list("lr:hierarchicalSubject", "Bag", metadata.hierarchicalKeywords))
        }
        if !metadata.persons.isEmpty {
            var names: [String] = []
            for person in metadata.persons where !names.contains(person.name) { names.append(person.name) }
            elements.append(list("Iptc4xmpExt:PersonInImage", "Bag", names))
            if !isRender { elements += regions(metadata.persons, of: asset) }
        }
        return elements
    }

    static func alternatives(_ name: String, _ text: String) -> String {
        "<\(name)><rdf:Alt><rdf:li xml:lang=\"x-default\">\(escaped(text))</rdf:li></rdf:Alt></\(name)>"
    }

    private static func list(_ name: String, _ kind: String, _ texts: [String]) -> String {
        let items = texts.map { "<rdf:li>\(escaped($0))</rdf:li>" }.joined()
        return "<\(name)><rdf:\(kind)>\(items)</rdf:\(kind)></\(name)>"
    }

    /// Returns the faces of the displayed original in the form of the Metadata Working Group: centre and size as
    /// fractions.
    private static func regions(_ persons: [Person], of asset: Asset) -> [String] {
        let faces = persons.compactMap { person in person.area.map { (person.name, $0) } }
        guard !faces.isEmpty, let original = asset.originalResource else { return [] }
        let items = faces.map { name, area in
            """
            <rdf:li rdf:parseType="Resource"><mwg-rs:Name>\(escaped(name))</mwg-rs:Name><mwg-rs:Type>Face</mwg-rs:Type>\
            <mwg-rs:Area stArea:x="\(area.x + area.width / 2)" stArea:y="\(area.y + area.height / 2)" \
            stArea:w="\(area.width)" stArea:h="\(area.height)" stArea:unit="normalized"/></rdf:li>
            """
        }
        return [
            """
            <mwg-rs:Regions rdf:parseType="Resource"><mwg-rs:AppliedToDimensions stDim:w="\(original.pixelWidth)" \
            stDim:h="\(original.pixelHeight)" stDim:unit="pixel"/><mwg-rs:RegionList><rdf:Bag>\(items.joined())\
            </rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions>
            """
        ]
    }
}
