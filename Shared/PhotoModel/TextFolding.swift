// Normal forms come from the Swift standard library (the `_Unicode` SPI on which Foundation is built): the catalog and
// the change-broker must fold identically, and neither needs ICU for it. This is the only file that uses the SPI.
@_spi(_Unicode) import Swift

/// Returns text in Unicode normal form C, the form in which text is stored and compared.
public func nfc(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 < 0x80 }) { return text }
    var result = String.UnicodeScalarView()
    result.append(contentsOf: text._nfc)
    return String(result)
}

/// Returns text without case and diacritics: the form that `[cd]` compares and that the catalog stores in folded
/// columns.
///
/// The same as ``TextFolding/caseAndDiacritics``. Idempotent.
public func folded(_ text: String) -> String { TextFolding.caseAndDiacritics.apply(text) }

/// The differences that a text comparison ignores: NSPredicate's `[c]`, `[d]` and `[cd]`.
///
/// Folded columns contain `caseAndDiacritics`. The other two are evaluated by ``apply(_:)``, which the catalog
/// registers as an SQL function.
public struct TextFolding: OptionSet, Sendable, Hashable {
    public let rawValue: Int

    public init(rawValue: Int) { self.rawValue = rawValue }

    /// Full case folding of every scalar, independent of the language: `ß` equals `SS`, `ς` equals `Σ`.
    public static let ignoringCase = TextFolding(rawValue: 1)
    /// Drops combining diacritical marks: `é` equals `e`.
    ///
    /// Vowel signs and points of other scripts are kept, and so are letters that Unicode does not decompose, such as
    /// `ø`.
    public static let ignoringDiacritics = TextFolding(rawValue: 2)
    /// Both: the folding of folded columns.
    public static let caseAndDiacritics: TextFolding = [.ignoringCase, .ignoringDiacritics]

    /// The options as written in NSPredicate's brackets: "", "c", "d" or "cd".
    public var letters: String {
        (contains(.ignoringCase) ? "c" : "") + (contains(.ignoringDiacritics) ? "d" : "")
    }

    /// Parses "c", "d", "cd" or "dc" in either case; `nil` for anything else.
    public init?(letters: some StringProtocol) {
        var options: TextFolding = []
        for letter in letters {
            let option: TextFolding
            switch letter {
            case "c", "C": option = .ignoringCase
            case "d", "D": option = .ignoringDiacritics
            default: return nil
            }
            guard options.isDisjoint(with: option) else { return nil }
            options.insert(option)
        }
        self = options
    }

    /// Returns the text in the form in which it is compared under these options, in normal form C.
    public func apply(_ text: String) -> String {
        if text.utf8.allSatisfy({ $0 < 0x80 }) {
            return contains(.ignoringCase) ? String(decoding: text.utf8.map(Self.lowered), as: UTF8.self) : text
        }
        if isEmpty { return nfc(text) }
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        result.reserveCapacity(bytes.count)
        var start = 0
        while start < bytes.count {
            let other = bytes[start...].firstIndex { $0 >= 0x80 } ?? bytes.count
            let end = bytes[other...].firstIndex { $0 < 0x80 } ?? bytes.count
            // A mark belongs to the character before it. No character joins with an ASCII character after it.
            let plainEnd = other < bytes.count ? max(start, other - 1) : other
            let plain = bytes[start..<plainEnd]
            if contains(.ignoringCase) { result += plain.map(Self.lowered) } else { result += plain }
            if plainEnd < end { result += applyByScalars(String(decoding: bytes[plainEnd..<end], as: UTF8.self)).utf8 }
            start = end
        }
        return String(decoding: result, as: UTF8.self)
    }

    /// Returns the same as ``apply(_:)``, scalar by scalar with the tables of Unicode, which takes a hundred times as
    /// long for ASCII.
    func applyByScalars(_ text: String) -> String {
        if isEmpty { return nfc(text) }
        var scalars = String.UnicodeScalarView()
        for scalar in text._nfd {
            if contains(.ignoringDiacritics), Self.isDiacritic(scalar) { continue }
            if contains(.ignoringCase) {
                scalars.append(contentsOf: Self.caseFolded(scalar))
            } else {
                scalars.append(scalar)
            }
        }
        guard contains(.ignoringDiacritics), contains(.ignoringCase) else { return nfc(String(scalars)) }
        // Case folding can add marks (U+0130 becomes i with a dot above).
        var plain = String.UnicodeScalarView()
        for scalar in String(scalars)._nfd where !Self.isDiacritic(scalar) { plain.append(scalar) }
        return nfc(String(plain))
    }

    private static func lowered(_ byte: UInt8) -> UInt8 { (0x41...0x5A).contains(byte) ? byte | 0x20 : byte }

    /// Applies Unicode's full case folding by way of the lower, upper and lower case mappings of a scalar.
    ///
    /// The dotless i is kept, as in CaseFolding.txt.
    private static func caseFolded(_ scalar: Unicode.Scalar) -> String.UnicodeScalarView {
        if scalar.value == 0x131 { return String(scalar).unicodeScalars }
        var result = String.UnicodeScalarView()
        for lower in scalar.properties.lowercaseMapping.unicodeScalars {
            for upper in lower.properties.uppercaseMapping.unicodeScalars {
                result.append(contentsOf: upper.properties.lowercaseMapping.unicodeScalars)
            }
        }
        return result
    }

    private static func isDiacritic(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x300...0x36F, 0x483...0x487, 0x1AB0...0x1AFF, 0x1DC0...0x1DFF, 0x20D0...0x20FF, 0xFE20...0xFE2F: true
        default: false
        }
    }
}
