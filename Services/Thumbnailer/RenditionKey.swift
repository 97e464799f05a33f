import JSONValue
import PhotoModel
import Storage

/// The name under which a picture is cached: SHA-256 over the canonical JSON of everything that can change a pixel.
struct RenditionKey: Sendable, Hashable, CustomStringConvertible {
    /// 64 lower-case hexadecimal digits.
    let text: String
    /// What was hashed; nil for a key that was read from a file's name.
    let canonical: String?

    static let length = 64

    /// - Parameters:
    ///   - plan: what is made from which bytes
    ///   - renderer: the version of the code that makes it; a new one never finds pictures of an older one
    init(_ plan: RenditionPlan, renderer: String) {
        var object = plan.json.objectValue ?? [:]
        object["renderer"] = .string(renderer)
        self.init(canonical: JSON.object(object).text)
    }

    /// The key of what stands in the head of a cache file, which proves that the file is what its name says.
    init(canonical: String) {
        self.canonical = canonical
        self.text = ResourceDigest(of: Array(canonical.utf8)).text
    }

    /// Reads a key, as it stands in a file name.
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
    /// How the plan travels to a worker; in this order of members it is the canonical form for ``RenditionKey``.
    static let table = JSONTable(
        "RenditionPlan",
        "One picture to be made.",
        unknown: .refused,
        blank: RenditionPlan(),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the source."),
            .required("targetSize", \.targetSize, .targetSize, "Pixels wanted."),
            .required("contentMode", \.contentMode, .name(ImageContentMode.self), "Fit or fill."),
            .required("resizeMode", \.resizeMode, .name(ImageResizeMode.self), "How near the size."),
            .optional("crop", \.crop, .object(UnitRect.self), "Part of the displayed picture."),
            .required("format", \.format, .name(DeliveredFormat.self), "Format of the bytes."),
            .required("quality", \.quality, .count(0...100), "Of lossy formats."),
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
