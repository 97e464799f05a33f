extension String {
    /// The text with everything that could move a cursor or hide text written out: control characters, line and
    /// paragraph separators, and marks that turn the direction of writing.
    ///
    /// Names come from files and from other people; none may speak to the terminal.
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

    /// At most so many characters; what is left out in the middle is marked.
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
