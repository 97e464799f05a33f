import ImageFormats
import PhotoModel

/// Reads the names of the people in an image, and where their faces are.
enum PersonReader {
    /// The stored pixels, to which areas refer.
    struct Frame {
        var width: Double
        var height: Double
        /// The EXIF orientation, 1...8, which displays them upright.
        var orientation: Int

        /// Creates a frame whose size is unknown.
        init(orientation: Int) { (width, height, self.orientation) = (0, 0, orientation) }

        init(_ header: ImageHeader) {
            let swapsSides = !header.kind.isOrientedByDecoder && header.orientation >= 5
            orientation = header.kind.isOrientedByDecoder ? 1 : header.orientation
            width = Double(swapsSides ? header.pixelHeight : header.pixelWidth)
            height = Double(swapsSides ? header.pixelWidth : header.pixelHeight)
        }
    }

    /// Returns the people of all fields of ``MetadataFields/persons``, each name once unless several faces have it.
    static func persons(_ block: borrowing MetadataBlock, _ frame: Frame) -> [Person] {
        var persons: [Person] = []
        for (list, name, area) in [
            ("Xmp.mwg-rs.Regions/mwg-rs:RegionList", "mwg-rs:Name", area),
            ("Xmp.MP.RegionInfo/MPRI:Regions", "MPReg:PersonDisplayName", rectangle),
        ] as [(String, String, (borrowing MetadataBlock, String, Frame) -> UnitRect?)] {
            // Most images have no regions, and a search for each of them takes time.
            guard block.hasField(startingWith: list) else { continue }
            let known = Set(persons.map(\.name))
            for index in 1...AssetMetadata.maxPersons {
                let region = "\(list)[\(index)]/"
                guard let name = block.text(region + name).flatMap(AssetMetadataReader.clipped), !known.contains(name),
                    (block.text(region + "mwg-rs:Type") ?? "Face") == "Face"
                else { continue }
                persons.append(Person(name: name, area: area(block, region, frame)))
            }
        }
        for text in block.texts("Xmp.iptcExt.PersonInImage") {
            guard let name = AssetMetadataReader.clipped(text), !persons.contains(where: { $0.name == name }) else {
                continue
            }
            persons.append(Person(name: name))
        }
        return Array(persons.prefix(AssetMetadata.maxPersons))
    }

    /// Reads centre and size as fractions of the sides, the form of the Metadata Working Group.
    private static func area(_ block: borrowing MetadataBlock, _ region: String, _ frame: Frame) -> UnitRect? {
        var numbers: [Double] = []
        for member in ["x", "y", "w", "h"] {
            guard let number = block.text("\(region)mwg-rs:Area/stArea:\(member)").flatMap({ Double($0) }) else {
                return nil
            }
            numbers.append(number)
        }
        let unit = block.text("\(region)mwg-rs:Area/stArea:unit") ?? "normalized"
        guard unit == "normalized" else { return nil }
        let rect = UnitRect(
            x: numbers[0] - numbers[2] / 2,
            y: numbers[1] - numbers[3] / 2,
            width: numbers[2],
            height: numbers[3]
        )
        let applied = "Xmp.mwg-rs.Regions/mwg-rs:AppliedToDimensions/stDim:"
        guard let width = block.text(applied + "w").flatMap({ Double($0) }),
            let height = block.text(applied + "h").flatMap({ Double($0) })
        else { return displayed(rect, frame.orientation) }
        // Some programs write areas of the displayed image; `AppliedToDimensions` is then the displayed size.
        let isOfDisplayed =
            frame.orientation >= 5 && frame.width != frame.height && (width > height) != (frame.width > frame.height)
            && width != height && frame.width > 0
        return displayed(rect, isOfDisplayed ? 1 : frame.orientation)
    }

    /// Reads "x, y, width, height" as fractions of the sides from the upper left corner, the form of Microsoft.
    private static func rectangle(_ block: borrowing MetadataBlock, _ region: String, _ frame: Frame) -> UnitRect? {
        let numbers = (block.text(region + "MPReg:Rectangle") ?? "").split { $0 == "," || $0 == " " }.map { Double($0) }
        guard numbers.count == 4, let x = numbers[0], let y = numbers[1], let width = numbers[2],
            let height = numbers[3]
        else { return nil }
        return displayed(UnitRect(x: x, y: y, width: width, height: height), frame.orientation)
    }

    /// Returns an area of the stored pixels as it is displayed, limited to the image; nil if nothing of it is inside.
    static func displayed(_ area: UnitRect, _ orientation: Int) -> UnitRect? {
        let (x, y, width, height) = (area.x, area.y, area.width, area.height)
        let (right, bottom) = (1 - x - width, 1 - y - height)
        let turned =
            switch orientation {
            case 2: UnitRect(x: right, y: y, width: width, height: height)
            case 3: UnitRect(x: right, y: bottom, width: width, height: height)
            case 4: UnitRect(x: x, y: bottom, width: width, height: height)
            case 5: UnitRect(x: y, y: x, width: height, height: width)
            case 6: UnitRect(x: bottom, y: x, width: height, height: width)
            case 7: UnitRect(x: bottom, y: right, width: height, height: width)
            case 8: UnitRect(x: y, y: right, width: height, height: width)
            default: area
            }
        /// Limits a fraction to 0...1 and rounds it to six digits.
        func rounded(_ number: Double) -> Double { (min(1, max(0, number)) * 1e6).rounded() / 1e6 }
        let (left, top) = (rounded(turned.x), rounded(turned.y))
        let result = UnitRect(
            x: left,
            y: top,
            width: rounded(rounded(turned.x + turned.width) - left),
            height: rounded(rounded(turned.y + turned.height) - top)
        )
        return result.isValid ? result : nil
    }
}
