import JSONValue
import PhotoModel
import Storage

/// The cache key of a rendition: SHA-256 over the canonical JSON of everything that can change a pixel.
struct RenditionKey: Sendable, Hashable, CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    let text: String
    /// The hashed text; nil for a key read from a file name.
    let canonical: String?

    static let length = 64

    /// - Parameters:
    ///   - plan: the source and options of the rendition
    ///   - rendererVersion: the version of the rendering code; a new version never finds renditions of an older one
    init(_ plan: RenditionPlan, rendererVersion: String) {
        var object = plan.json.objectValue ?? [:]
        object["renderer"] = .string(rendererVersion)
        self.init(canonical: JSON.object(object).text)
    }

    /// Computes the key of the text in a cache file's header, to check that the file has the right name.
    init(canonical: String) {
        self.canonical = canonical
        self.text = ResourceDigest(of: Array(canonical.utf8)).text
    }

    /// Parses a key from a file name.
    init?(_ text: String) {
        guard text.utf8.count == Self.length,
            text.utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0) })
        else { return nil }
        self.text = text
        self.canonical = nil
    }

    static func == (first: RenditionKey, second: RenditionKey) -> Bool { first.text == second.text }

    func hash(into hasher: inout Hasher) { hasher.combine(text) }

    var description: String { text }
}

extension RenditionPlan: JSONTabled {
    /// The encoding of a plan for workers. Its order of members is the canonical form hashed by ``RenditionKey``.
    static let table = JSONTable(
        "RenditionPlan",
        "One image to render.",
        unknown: .refused,
        blank: RenditionPlan(),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the source."),
            .required("targetSize", \.targetSize, .targetSize, "Requested size in pixels."),
            .required("contentMode", \.contentMode, .name(ImageContentMode.self), "Fit or fill."),
            .required("resizeMode", \.resizeMode, .name(ImageResizeMode.self), "How exactly the size is met."),
            .optional("crop", \.crop, .object(UnitRect.self), "Part of the displayed image."),
            .required("format", \.format, .name(DeliveredFormat.self), "Format of the bytes."),
            .required("quality", \.quality, .count(0...100), "Quality of lossy formats."),
            .optional("frame", \.frame, .object(VideoFrameChoice.self), "Of a video: which frame."),
            .optional("headroom", \.headroom, .number(0...65_536), "For high dynamic range; 0 for all of it."),
        ]
    )

    private init() {
        digest = ""
        targetSize = .maximum
        contentMode = .aspectFit
        resizeMode = .none
        format = .jpeg
        quality = 0
    }
}
