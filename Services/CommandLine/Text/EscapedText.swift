extension String {
    /// The text with all characters escaped that could control the terminal or hide text: control characters, line and
    /// paragraph separators, and bidirectional formatting characters.
    ///
    /// Names come from files and other users, so they must not contain terminal escape sequences.
    var printable: String {
        guard unicodeScalars.contains(where: \.isUnprintable) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            switch scalar {
            case "\n": text += "\\n"
            case "\r": text += "\\r"
            case "\t": text += "\\t"
            case _ where scalar.isUnprintable: text += "\\u{\(String(scalar.value, radix: 16))}"
            default: text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    /// Returns at most `width` characters; an ellipsis replaces the middle of a longer text.
    func shortened(to width: Int) -> String {
        guard count > width, width > 4 else { return self }
        let tail = (width - 1) / 3
        return prefix(width - 1 - tail) + "…" + suffix(tail)
    }
}

extension Unicode.Scalar {
    fileprivate var isUnprintable: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: true
        case .format: (0x202A...0x202E).contains(value) || (0x2066...0x2069).contains(value)
        default: false
        }
    }
}
