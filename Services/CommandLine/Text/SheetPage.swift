import Foundation
import PhotoModel

/// A contact sheet as an HTML page that contains its images: one file, which needs no other and no network.
struct SheetPage {
    /// An image of the page, or the reason why there is none.
    struct Entry {
        var asset: Asset
        /// The JPEG, and its size in pixels.
        var image: (bytes: [UInt8], width: Int, height: Int)?
        var problem = ""
    }

    var title: String
    /// The height of a row, in CSS pixels.
    var rowHeight: Int
    var entries: [Entry]

    var html: String {
        var lines = [
            "<!DOCTYPE html>", "<html lang=\"en\">", "<head>", "<meta charset=\"utf-8\">",
            "<meta name=\"viewport\" content=\"width=device-width\">", "<title>\(Self.escaped(title))</title>",
            "<style>",
            style, "</style>", "</head>", "<body>", "<h1>\(Self.escaped(title))</h1>", "<main>",
        ]
        lines += entries.map(figure)
        lines += ["</main>", "</body>", "</html>", ""]
        return lines.joined(separator: "\n")
    }

    private var style: String {
        """
        :root { color-scheme: light dark; font: 14px/1.4 system-ui, sans-serif; }
        body { margin: 1em; }
        h1 { font-size: 1.3em; font-weight: 600; }
        main { display: flex; flex-wrap: wrap; gap: 8px; }
        main::after { content: ""; flex: 1000 0 0; }
        figure { margin: 0; flex: var(--ratio) 0 calc(var(--ratio) * \(rowHeight)px); max-width: var(--max-width); }
        img { display: block; width: 100%; height: auto; }
        p.problem { display: grid; place-items: center; height: \(rowHeight)px; margin: 0; border: 1px solid gray; }
        figcaption { overflow: hidden; white-space: nowrap; text-overflow: ellipsis; }
        figcaption small { opacity: 0.7; }
        """
    }

    private func figure(_ entry: Entry) -> String {
        let asset = entry.asset
        let name = Self.escaped(asset.originalFilename ?? asset.id.text)
        var facts: [String] = []
        if let date = asset.creationDate {
            facts.append(QuantityFormatter.shortTime(date, offset: asset.creationOffset))
        }
        if asset.isFavorite { facts.append("♥") }
        if asset.rating > 0 { facts.append(String(repeating: "★", count: asset.rating)) }
        let caption = name + (facts.isEmpty ? "" : " <small>\(facts.joined(separator: " "))</small>")
        let words = [asset.caption ?? "", asset.keywords.joined(separator: ", ")].filter { !$0.isEmpty }
        let hover = Self.escaped(words.joined(separator: " - "))
        guard let image = entry.image else {
            return "<figure style=\"--ratio: 1.5; --max-width: \(rowHeight * 3 / 2)px\"><p class=\"problem\">"
                + "\(Self.escaped(entry.problem))</p><figcaption>\(caption)</figcaption></figure>"
        }
        let ratio = (Double(image.width) / Double(max(1, image.height)) * 1000).rounded() / 1000
        return "<figure style=\"--ratio: \(ratio); --max-width: \(image.width * 3 / 2)px\" title=\"\(hover)\">"
            + "<img width=\"\(image.width)\" height=\"\(image.height)\" alt=\"\(name)\" "
            + "src=\"data:image/jpeg;base64,\(Data(image.bytes).base64EncodedString())\">"
            + "<figcaption>\(caption)</figcaption></figure>"
    }

    /// Returns the text in the form for elements and quoted attributes.
    static func escaped(_ text: String) -> String {
        var escaped = ""
        // Scalars, because a quote and a combining mark after it are one Character, which is not equal to a quote.
        for scalar in text.printable.unicodeScalars {
            switch scalar {
            case "&": escaped += "&amp;"
            case "<": escaped += "&lt;"
            case ">": escaped += "&gt;"
            case "\"": escaped += "&quot;"
            default: escaped.unicodeScalars.append(scalar)
            }
        }
        return escaped
    }
}
