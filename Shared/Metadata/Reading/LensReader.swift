/// Reads the name of the lens.
enum LensReader {
    /// Returns the name that the camera or a program wrote, else that of the lens's number in the maker note, else its
    /// focal lengths and apertures.
    static func lens(_ block: borrowing MetadataBlock) -> String? {
        for field in MetadataFields.lensNames {
            if let name = block.text(field), isName(name) { return name }
        }
        for field in MetadataFields.lensNumbers {
            if let name = name(block, field) { return name }
        }
        for field in MetadataFields.lensRanges {
            if let range = block.text(field).flatMap(range) { return range }
        }
        return nil
    }

    /// Returns the name of a lens by its number.
    private static func name(_ block: borrowing MetadataBlock, _ field: String) -> String? {
        guard let name = block.interpretation(field), name != block.text(field), isName(name),
            !name.hasPrefix("("), !name.lowercased().hasPrefix("unknown"), name != "Manual lens",
            name.contains(where: \.isLetter)
        else { return nil }
        // The library names all lenses that have the number: "Manual lens | Sony E 50mm F1.8 OSS | E PZ 16-50mm …".
        // A bar can also be in the name of one: "Sigma 85mm F1.4 DG HSM | A".
        guard name.split(separator: " | ").count(where: { $0.contains("mm") }) < 2 else { return nil }
        // Compact cameras write any number here, and no focal lengths.
        if field == "Exif.CanonCs.LensType", block.text("Exif.CanonCs.Lens").map(hasDigit) != true { return nil }
        return name
    }

    /// Returns false for the placeholders of cameras without a known lens: "----", "0.0 mm f/0.0", "n/a".
    private static func isName(_ text: String) -> Bool {
        let isPlaceholder = ["n/a", "none", "off", "unknown"].contains(text.lowercased())
        let isZero = text.contains("0") && !hasDigit(text) && text.contains("mm")
        return !isPlaceholder && !isZero && text.contains { $0.isLetter || $0.isNumber } && text.contains { $0 != "0" }
    }

    private static func hasDigit(_ text: String) -> Bool { text.contains { ("1"..."9").contains($0) } }

    /// Converts "24/1 70/1 14/5 14/5", the shortest and longest focal length with their apertures, to "24-70mm f/2.8".
    static func range(_ text: String) -> String? {
        let parts = text.split { $0 == " " || $0 == "," }
        guard parts.count == 4 else { return nil }
        let numbers = parts.map { LocationReader.rational($0).flatMap { $0 > 0 && $0 < 10_000 ? $0 : nil } }
        guard let shortest = numbers[0], let longest = numbers[1] ?? numbers[0] else { return nil }
        let length = span(shortest, longest) + "mm"
        guard let widest = numbers[2] else { return length }
        return "\(length) f/\(span(widest, numbers[3] ?? widest))"
    }

    private static func span(_ first: Double, _ last: Double) -> String {
        first == last ? short(first) : "\(short(first))-\(short(last))"
    }

    /// Returns a number with at most two digits after the point.
    private static func short(_ number: Double) -> String {
        let rounded = (number * 100).rounded() / 100
        return rounded == rounded.rounded() ? String(Int(rounded)) : String(rounded)
    }
}
