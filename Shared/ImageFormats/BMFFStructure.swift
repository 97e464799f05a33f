/// Parses the boxes of a HEIC or AVIF file: the size of the primary item after its own rotation, and the ranges of EXIF
/// and XMP.
enum BMFFStructure {
    struct Box {
        let name: String
        let content: ByteReader
        /// True if the file contains all bytes that the box header announces.
        let isWhole: Bool
    }

    private struct Item {
        var type = ""
        var contentType = ""
        /// The ranges of the item's data, in order.
        var extents: [Range<Int>] = []

        /// The index of the last byte of its entry's flags.
        var flags = 0

        /// The range of an item with a single extent, as EXIF and XMP items always have.
        var extent: Range<Int>? { extents.count == 1 ? extents[0] : nil }
    }

    static func read(_ file: ByteReader, kind: ImageFormat) throws(ImageHeader.Failure) -> ImageHeader {
        let outer = boxes(file)
        // libheif uses the last of several `meta` boxes, and also reads boxes after those that are read here.
        let all = boxes(file, withAnyName: true)
        guard all.count < maxBoxes, all.count(where: { $0.name == "meta" }) <= 1 else {
            throw .invalid("a \(kind.rawValue) file with several descriptions or too many boxes")
        }
        guard let meta = outer.first(where: { $0.name == "meta" }) else {
            guard !outer.contains(where: { $0.name == "moov" }) else {
                throw .unsupported(found: "an image sequence without a primary image")
            }
            throw .truncated
        }
        guard meta.isWhole else { throw .truncated }
        let inner = boxes(meta.content, from: 4, withAnyName: true)
        guard inner.count < maxBoxes else { throw .invalid("a \(kind.rawValue) file with too many boxes") }
        func content(_ name: String) -> ByteReader? { inner.first { $0.name == name }?.content }

        guard let primary = content("pitm").flatMap(primaryItem), let properties = content("iprp") else {
            throw .invalid("a \(kind.rawValue) file without a primary image")
        }
        let described = associated(properties, with: primary)
        // Some files have the size after the properties that change it.
        var size = described.last { $0.name == "ispe" }.flatMap { property -> (width: Int, height: Int)? in
            guard let width = property.content.big32(4), let height = property.content.big32(8) else { return nil }
            return (width, height)
        }
        var hasAlpha = false
        for property in described {
            switch property.name {
            case "clap":
                if let cut = cleanAperture(property.content), let whole = size, cut.0 <= whole.width,
                    cut.1 <= whole.height
                {
                    size = cut
                }
            case "irot":
                if let turns = property.content.byte(0), turns & 1 == 1 { size = size.map { ($0.height, $0.width) } }
            default: break
            }
        }
        if let prop = boxes(properties).first(where: { $0.name == "ipco" }) {
            hasAlpha = boxes(prop.content).contains { $0.name == "auxC" && $0.content.find("alpha") != nil }
        }
        guard let size else { throw .invalid("a \(kind.rawValue) file whose primary image has no size") }
        var header = ImageHeader(kind: kind, storedWidth: size.width, storedHeight: size.height)
        header.hasAlpha = hasAlpha
        header.hasLimitedGrey = hasLimitedGrey(described)
        header.isComplete = outer.allSatisfy(\.isWhole)
        let items = items(information: content("iinf"), locations: content("iloc"), data: content("idat"), file: file)
        // libheif 1.15 copies the alpha plane of a tile with the size and depth of the colour planes, which exceeds the
        // memory of the alpha plane.
        if hasAuxiliaryOfTile(content("iref"), items) {
            throw .unsupported(found: "an image whose tiles have their own opacity")
        }
        for (_, item) in items.sorted(by: { $0.key < $1.key }) {
            guard let extent = item.extent else { continue }
            if extent.upperBound > file.bytes.endIndex {
                header.isComplete = false
            } else if item.type == "Exif", header.exif == nil {
                header.exif = exifBlock(file, extent)
            } else if item.type == "mime", item.contentType == "application/rdf+xml", header.xmp == nil {
                header.xmp = extent
            }
        }
        return header
    }

    /// Returns true if the properties of an image declare grey in limited range. `full_range_flag` of `nclx` takes
    /// precedence over the image's own header.
    private static func hasLimitedGrey(_ properties: [Box]) -> Bool {
        guard let configuration = properties.first(where: { $0.name == "av1C" })?.content,
            configuration.byte(2).map({ $0 & 0x10 != 0 }) == true
        else { return false }
        if let numbers = properties.first(where: { $0.name == "colr" && $0.content.has("nclx", at: 0) })?.content,
            let flags = numbers.byte(10)
        {
            return flags & 0x80 == 0
        }
        return AV1SequenceHeader(configuration: configuration).map { !$0.isFullRange } ?? false
    }

    /// Returns the data of all items that are images or parts of one, in the order of their identifiers.
    static func imageData(_ file: ByteReader) -> [Range<Int>]? {
        guard let meta = boxes(file).first(where: { $0.name == "meta" }), meta.isWhole else { return nil }
        let inner = boxes(meta.content, from: 4)
        func content(_ name: String) -> ByteReader? { inner.first { $0.name == name }?.content }
        let items = items(information: content("iinf"), locations: content("iloc"), data: content("idat"), file: file)
        let images = items.filter { !["Exif", "mime", "uri "].contains($0.value.type) }
        return images.sorted { $0.key < $1.key }.flatMap(\.value.extents)
    }

    /// Returns the payload of the first item `tmap`, its second input, which is the gain map, and the index of the byte
    /// that hides the gain map.
    static func toneMap(_ file: ByteReader) -> (payload: ByteReader, item: Int, hidingByte: Int)? {
        guard let meta = boxes(file).first(where: { $0.name == "meta" }), meta.isWhole else { return nil }
        let inner = boxes(meta.content, from: 4)
        func content(_ name: String) -> ByteReader? { inner.first { $0.name == name }?.content }
        let items = items(information: content("iinf"), locations: content("iloc"), data: content("idat"), file: file)
        let maps = items.filter { $0.value.type == "tmap" }.sorted { $0.key < $1.key }
        guard let (id, item) = maps.first, let extent = item.extent, extent.upperBound <= file.bytes.endIndex,
            let references = content("iref"), let version = references.byte(0)
        else { return nil }
        let width = version == 0 ? 2 : 4
        for box in boxes(references, from: 4) where box.name == "dimg" && box.content.big(0, width) == id {
            guard box.content.big16(width) == 2, let map = box.content.big(width + 2 + width, width),
                let flags = items[map]?.flags
            else { continue }
            return (ByteReader(file.bytes[extent]), map, flags)
        }
        return nil
    }

    /// Returns true if a tile of another image has an auxiliary image.
    ///
    /// As in libheif, a reference begins where the identifiers of the previous one end, whatever the size of its box.
    private static func hasAuxiliaryOfTile(_ references: ByteReader?, _ items: [Int: Item]) -> Bool {
        guard let references, let version = references.byte(0) else { return false }
        let width = version == 0 ? 2 : 4
        var parts: [Int: Set<Int>] = [:]
        var described: Set<Int> = []
        var at = 4
        while let size = references.big32(at), let name = references.slice(at + 4, 4) {
            let start = at + (size == 1 ? 16 : 8) + (name.elementsEqual("uuid".utf8) ? 16 : 0)
            guard let item = references.big(start, width), let count = references.big16(start + width) else { break }
            let others = (0..<count).compactMap { references.big(start + width + 2 + $0 * width, width) }
            if name.elementsEqual("dimg".utf8) { parts[item, default: []].formUnion(others) }
            if name.elementsEqual("auxl".utf8) { described.formUnion(others) }
            at = start + width + 2 + count * width
        }
        // Items of these types consist of whole images, unless they are tiles themselves.
        var tiles = Set(parts.filter { !["tmap", "iden", "sato"].contains(items[$0.key]?.type) }.values.joined())
        var open = Array(tiles)
        while let tile = open.popLast() {
            guard items[tile]?.type == "iden", let inner = parts[tile] else { continue }
            open += inner.subtracting(tiles)
            tiles.formUnion(inner)
        }
        return !tiles.isDisjoint(with: described)
    }

    /// The maximum number of boxes that are read in a box.
    private static let maxBoxes = 4096

    /// Returns the boxes in a box.
    ///
    /// - Parameter withAnyName: true to continue after a name that is not UTF-8, as libheif does
    static func boxes(_ reader: ByteReader, from start: Int = 0, withAnyName: Bool = false) -> [Box] {
        var result: [Box] = []
        var offset = start
        while result.count < maxBoxes, var size = reader.big32(offset), let bytes = reader.slice(offset + 4, 4) {
            let text = withAnyName ? String(decoding: bytes, as: UTF8.self) : reader.text(offset + 4, 4)
            guard let name = text else { break }
            var head = 8
            if size == 1 {
                guard let large = reader.big(offset + 8, 8) else { break }
                size = large
                head = 16
            } else if size == 0 {
                size = reader.count - offset
            }
            guard size >= head else { break }
            let isWhole = size <= reader.count - offset
            guard let content = reader.slice(offset + head, min(size, reader.count - offset) - head) else { break }
            result.append(Box(name: name, content: ByteReader(content), isWhole: isWhole))
            guard isWhole else { break }
            offset += size
        }
        return result
    }

    private static func primaryItem(_ box: ByteReader) -> Int? { box.byte(0) == 0 ? box.big16(4) : box.big32(4) }

    /// Returns the properties of an item in the order in which they apply.
    private static func associated(_ box: ByteReader, with item: Int) -> [Box] {
        let parts = boxes(box)
        guard let container = parts.first(where: { $0.name == "ipco" }) else { return [] }
        let properties = boxes(container.content)
        for part in parts where part.name == "ipma" {
            let reader = part.content
            guard let version = reader.byte(0), let flags = reader.byte(3), let count = reader.big32(4) else {
                continue
            }
            var offset = 8
            for _ in 0..<min(count, 65_536) {
                let width = version < 1 ? 2 : 4
                guard let id = reader.big(offset, width), let links = reader.byte(offset + width) else { break }
                offset += width + 1
                let step = flags & 1 == 1 ? 2 : 1
                if id == item {
                    return (0..<links).compactMap { index in
                        guard let raw = reader.big(offset + index * step, step) else { return nil }
                        let position = (step == 2 ? raw & 0x7FFF : raw & 0x7F) - 1
                        return properties.indices.contains(position) ? properties[position] : nil
                    }
                }
                offset += links * step
            }
        }
        return []
    }

    private static func cleanAperture(_ box: ByteReader) -> (Int, Int)? {
        guard let width = box.big32(0), let widthBy = box.big32(4), let height = box.big32(8),
            let heightBy = box.big32(12),
            widthBy > 0, heightBy > 0, width >= widthBy, height >= heightBy
        else { return nil }
        return (width / widthBy, height / heightBy)
    }

    private static func items(
        information: ByteReader?,
        locations: ByteReader?,
        data: ByteReader?,
        file: ByteReader
    ) -> [Int: Item] {
        var items: [Int: Item] = [:]
        if let information, let version = information.byte(0) {
            for entry in boxes(information, from: version == 0 ? 6 : 8) where entry.name == "infe" {
                let reader = entry.content
                guard let version = reader.byte(0), version >= 2 else { continue }
                let width = version == 2 ? 2 : 4
                guard let id = reader.big(4, width), let type = reader.text(6 + width, 4) else { continue }
                var item = Item(type: type)
                item.flags = reader.bytes.startIndex + 3
                if type == "mime" {
                    let strings = reader.bytes.dropFirst(10 + width).split(
                        separator: 0,
                        omittingEmptySubsequences: false
                    )
                    if strings.count > 1 { item.contentType = String(decoding: strings[1], as: UTF8.self) }
                }
                // If several items have the same identifier, libheif uses the first.
                if items[id] == nil { items[id] = item }
            }
        }
        if let locations { locate(&items, locations, data, file) }
        return items
    }

    /// Sets the ranges of the items.
    private static func locate(_ items: inout [Int: Item], _ box: ByteReader, _ data: ByteReader?, _ file: ByteReader) {
        guard let version = box.byte(0), let sizes = box.big16(4) else { return }
        let (offsetSize, lengthSize, baseSize) = (sizes >> 12, sizes >> 8 & 15, sizes >> 4 & 15)
        let indexSize = version == 0 ? 0 : sizes & 15
        guard [offsetSize, lengthSize, baseSize, indexSize].allSatisfy({ $0 == 0 || $0 == 4 || $0 == 8 }) else {
            return
        }
        let idSize = version < 2 ? 2 : 4
        guard let count = box.big(6, idSize) else { return }
        var at = 6 + idSize
        func take(_ width: Int) -> Int? {
            guard let value = width == 0 ? 0 : box.big(at, width) else { return nil }
            at += width
            return value
        }
        for _ in 0..<min(count, 65_536) {
            guard let id = take(idSize), let method = version == 0 ? 0 : take(2), take(2) != nil,
                let base = take(baseSize), let extents = take(2)
            else { return }
            // Without lengths all items are empty. Because their entries may take no bytes, the file's size does not
            // bound their number.
            guard lengthSize > 0 else {
                at += extents * (indexSize + offsetSize)
                continue
            }
            for _ in 0..<extents {
                guard take(indexSize) != nil, let offset = take(offsetSize), let length = take(lengthSize) else {
                    return
                }
                let source = method & 15 == 1 ? data : file
                guard let source, method & 15 <= 1 else { continue }
                let (begin, overflowed) = base.addingReportingOverflow(offset)
                let (start, beyond) = begin.addingReportingOverflow(source.bytes.startIndex)
                let (end, farBeyond) = start.addingReportingOverflow(length)
                guard !overflowed, !beyond, !farBeyond, length > 0 else { continue }
                if items[id]?.extents.count ?? 0 < ImageData.maxParts { items[id]?.extents.append(start..<end) }
            }
        }
    }

    /// Returns the range of the TIFF structure in an Exif item, which begins with the offset of that structure.
    private static func exifBlock(_ file: ByteReader, _ extent: Range<Int>) -> Range<Int>? {
        let item = ByteReader(file.bytes[extent])
        guard let skip = item.big32(0), skip <= item.count - 4, item.count - 4 - skip > 8 else { return nil }
        return extent.lowerBound + 4 + skip..<extent.upperBound
    }
}
