import Glibc

/// The texts of an XMP field with one text for each language, such as `dc:description`.
struct LanguageAlternatives {
    /// The language and the text of each alternative; the default is "x-default" and comes first.
    let texts: [(language: String, text: String)]

    /// - Parameter value: the field as the metadata library prints it: `lang="x-default" A, b, lang="de" C`; or a plain
    ///   text without languages
    init(_ value: String) {
        guard value.hasPrefix(Self.mark) else {
            texts = [("x-default", value)]
            return
        }
        var texts: [(language: String, text: String)] = []
        for part in value.split(separator: /(^|, )lang="/, omittingEmptySubsequences: true) {
            guard let end = part.firstRange(of: "\" "), Self.isLanguage(part[..<end.lowerBound]) else {
                // The mark is part of a text, or the text is empty.
                if let last = texts.indices.last, !part.hasSuffix("\"") { texts[last].text += ", \(Self.mark)\(part)" }
                continue
            }
            texts.append((String(part[..<end.lowerBound]), String(part[end.upperBound...])))
        }
        self.texts = texts
    }

    private static let mark = "lang=\""

    private static func isLanguage(_ text: Substring) -> Bool {
        !text.isEmpty && text.count <= 35 && text.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "-") }
    }

    /// Returns the text in one of the preferred languages, else the default, else the first.
    ///
    /// - Parameter languages: language tags such as "de-AT"; "de" stands for all its regions
    func text(_ languages: [String] = userLanguages) -> String? {
        let texts = texts.filter { !$0.text.isEmpty }
        for language in languages.map({ $0.lowercased() }) {
            let found =
                texts.first { $0.language.lowercased() == language }
                ?? texts.first { $0.language.lowercased().hasPrefix(language + "-") }
            if let found { return found.text }
        }
        return texts.first { $0.language == "x-default" }?.text ?? texts.first?.text
    }

    /// The language of the process by `LC_ALL`, `LC_MESSAGES` or `LANG`, with and without its region.
    static let userLanguages: [String] = {
        for variable in ["LC_ALL", "LC_MESSAGES", "LANG"] {
            if let value = getenv(variable), value.pointee != 0 { return languages(ofLocale: String(cString: value)) }
        }
        return []
    }()

    /// Converts "de_AT.UTF-8" to "de-AT" and "de"; none for "C" and "POSIX".
    static func languages(ofLocale locale: String) -> [String] {
        let name = locale.prefix { $0 != "." && $0 != "@" }
        guard !name.isEmpty, name != "C", name != "POSIX" else { return [] }
        let tag = name.replacing("_", with: "-")
        let language = String(tag.prefix { $0 != "-" })
        return tag == language ? [language] : [String(tag), language]
    }
}
