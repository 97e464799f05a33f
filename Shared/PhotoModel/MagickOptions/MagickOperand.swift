/// The arguments of an option of `convert`, and the functions that parse them.
struct MagickOperand: Sendable {
    /// The option that the words belong to.
    let option: MagickWord
    let words: [MagickWord]
    /// The expected form, for errors.
    let usage: String

    /// The first argument; the option itself if it has none.
    var word: MagickWord { words.first ?? option }

    func refusal() -> MagickOptionError {
        MagickOptionError(word, "is not an argument of \(option.text): give \(usage)")
    }

    func refusal(because reason: String) -> MagickOptionError { MagickOptionError(word, reason) }

    /// The maximum number of characters of a number. More would not be more exact.
    static let maxNumberLength = 15

    /// Parses a number: an optional sign, and digits with at most one point; nil for any other notation.
    static func number(_ text: some StringProtocol) -> Double? {
        let digits = text.hasPrefix("-") || text.hasPrefix("+") ? text.dropFirst() : text[...]
        guard !digits.isEmpty, text.utf8.count <= maxNumberLength,
            digits.utf8.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) || $0 == UInt8(ascii: ".") }),
            digits.utf8.count(where: { $0 == UInt8(ascii: ".") }) <= 1, digits != "."
        else { return nil }
        return Double(text)
    }

    /// Returns the argument as a number, which may be followed by a percent sign if that is allowed.
    func number(allowsPercent: Bool = false) throws(MagickOptionError) -> Double {
        let text = allowsPercent && word.text.hasSuffix("%") ? String(word.text.dropLast()) : word.text
        guard let number = Self.number(text) else { throw refusal() }
        return number
    }

    /// Returns numbers separated by commas or `x`; with a percent sign they are fractions of 100.
    func numbers(_ counts: ClosedRange<Int>) throws(MagickOptionError) -> (values: [Double], isPercent: Bool) {
        let isPercent = word.text.contains("%")
        let parts = word.text.split(omittingEmptySubsequences: false) { $0 == "," || $0 == "x" }
        guard counts.contains(parts.count) else { throw refusal() }
        var values: [Double] = []
        for part in parts {
            guard let number = Self.number(part.hasSuffix("%") ? part.dropLast() : part) else { throw refusal() }
            values.append(number)
        }
        return (values, isPercent)
    }

    /// A size and an offset, `WIDTHxHEIGHT+X+Y`, with marks after the size.
    struct Geometry {
        var width: Double?
        var height: Double?
        /// The numbers after the size; empty if there are none.
        var offsets: [Double] = []
        var marks: Set<Character> = []
    }

    /// Returns the argument as a geometry, of whose marks only the given ones are allowed.
    func geometry(marks allowed: Set<Character> = []) throws(MagickOptionError) -> Geometry {
        var geometry = Geometry()
        var text = ""
        for character in word.text {
            if "%!<>^@".contains(character) {
                guard allowed.contains(character) else { throw refusal() }
                geometry.marks.insert(character)
            } else {
                text.append(character)
            }
        }
        let size = text.prefix { $0 != "+" && $0 != "-" }
        var rest = text.dropFirst(size.count)
        let sides = size.split(separator: "x", omittingEmptySubsequences: false)
        guard (1...2).contains(sides.count), !size.isEmpty else { throw refusal() }
        for (index, side) in sides.enumerated() where !side.isEmpty {
            guard let number = Self.number(side), number >= 0 else { throw refusal() }
            if index == 0 { geometry.width = number } else { geometry.height = number }
        }
        while let sign = rest.first {
            let digits = rest.dropFirst().prefix { $0 != "+" && $0 != "-" }
            guard geometry.offsets.count < 2, let number = Self.number(String(sign) + digits) else { throw refusal() }
            geometry.offsets.append(number)
            rest = rest.dropFirst(1 + digits.count)
        }
        return geometry
    }

    /// Returns the standard deviation of `0xSIGMA` and the offsets after it.
    func sigma(offsets: ClosedRange<Int> = 0...0) throws(MagickOptionError) -> (sigma: Double, offsets: [Double]) {
        let geometry = try geometry()
        guard geometry.width == 0, let sigma = geometry.height, offsets.contains(geometry.offsets.count) else {
            throw refusal()
        }
        return (sigma, geometry.offsets)
    }

    private static let names = [
        "black": "#000000", "white": "#ffffff", "red": "#ff0000", "blue": "#0000ff", "yellow": "#ffff00",
        "cyan": "#00ffff", "magenta": "#ff00ff", "orange": "#ffa500", "navy": "#000080", "ivory": "#fffff0",
    ]

    /// Returns the argument as a colour, `#rrggbb`.
    func colour() throws(MagickOptionError) -> String {
        let text = word.text.lowercased()
        if let known = Self.names[text] { return known }
        if text.hasPrefix("#"), text.dropFirst().allSatisfy(\.isHexDigit) {
            if text.utf8.count == 7 { return text }
            if text.utf8.count == 4 { return "#" + text.dropFirst().map { "\($0)\($0)" }.joined() }
        }
        if text.hasPrefix("rgb("), text.hasSuffix(")") {
            let parts = text.dropFirst(4).dropLast().split(separator: ",", omittingEmptySubsequences: false)
            let numbers = parts.compactMap { Self.number($0) }
            if parts.count == 3, numbers.count == 3,
                numbers.allSatisfy({ (0...255).contains($0) && $0 == $0.rounded() })
            {
                return "#"
                    + numbers.map { ($0 < 16 ? "0" : "") + String(Int($0), radix: 16) }.joined()
            }
        }
        throw refusal()
    }

    static let colours = "#rgb, #rrggbb, rgb(R,G,B) or one of " + names.keys.sorted().joined(separator: ", ")
}
