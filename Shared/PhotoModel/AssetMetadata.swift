public import JSONValue

/// The metadata of a file by which people search: how, where and by whom it was made.
///
/// All members come from the file or its sidecar and are nil if it has no value. `Shared/docs/metadata.md` lists the
/// tags from which each is read.
public struct AssetMetadata: Sendable, Hashable, JSONTabled {
    /// The f-number, for example 2.8.
    public var aperture: Double?
    /// The time of exposure in seconds.
    public var exposureTime: Double?
    /// The sensitivity, for example 400.
    public var iso: Int?
    /// The focal length in millimetres.
    public var focalLength: Double?
    /// The focal length with the same angle of view on 35 mm film, in millimetres.
    public var focalLengthIn35mm: Int?
    /// The state of the flash.
    public var flash: Flash?
    /// Degrees clockwise from north, as recorded: from true or magnetic north.
    public var imageDirection: Double?
    /// The title.
    public var title: String?
    /// The headline.
    public var headline: String?
    /// The copyright notice.
    public var copyright: String?
    /// The authors, separated by "; ".
    public var creator: String?
    /// The credit line.
    public var credit: String?
    /// The city.
    public var city: String?
    /// The state or province.
    public var state: String?
    /// The country.
    public var country: String?
    /// The colour or workflow label, for example "Red".
    public var label: String?
    /// The program or firmware that wrote the file.
    public var software: String?
    /// Keywords with their parents, separated by "|": "Places|Europe|Alps".
    public var hierarchicalKeywords: [String] = []
    /// The people in the image.
    public var persons: [Person] = []

    public init() {}

    /// True if no member has a value.
    public var isEmpty: Bool { self == AssetMetadata() }

    /// Returns the metadata in which the values of `other`, where it has any, replace its own.
    public func replacing(with other: AssetMetadata) -> AssetMetadata {
        guard case .object(var members) = json, case .object(let newer) = other.json else { return self }
        for (name, value) in newer.members { members[name] = value }
        return (try? AssetMetadata(json: .object(members))) ?? self
    }

    /// The maximum length of a text in UTF-8 bytes.
    public static let maxTextBytes = 1024
    /// The maximum number of ``hierarchicalKeywords``.
    public static let maxKeywords = 1024
    /// The maximum number of ``persons``.
    public static let maxPersons = 256

    // Values outside these ranges count as missing: cameras write 0 for unknown ones.

    /// The range of ``aperture``.
    public static let apertures = 0.1...1000.0
    /// The range of ``exposureTime``.
    public static let exposureTimes = 1e-9...1e7
    /// The range of ``iso``.
    public static let sensitivities = 1...100_000_000
    /// The range of ``focalLength``.
    public static let focalLengths = 0.01...100_000.0
    /// The range of ``focalLengthIn35mm``.
    public static let focalLengthsIn35mm = 1...100_000
    /// The range of ``imageDirection``.
    public static let directions = 0.0...360.0

    private static let text = JSONType<String>.text(maxBytes: maxTextBytes)

    public static let table = JSONTable(
        "AssetMetadata",
        "The camera, settings, place and author that the file names. Absent members are unknown.",
        unknown: .ignored,
        blank: AssetMetadata(),
        [
            .optional("aperture", \.aperture, .number(apertures), "The f-number."),
            .optional("exposureTime", \.exposureTime, .number(exposureTimes), "Seconds."),
            .optional("iso", \.iso, .count(sensitivities), "The sensitivity."),
            .optional("focalLength", \.focalLength, .number(focalLengths), "Millimetres."),
            .optional(
                "focalLengthIn35mm",
                \.focalLengthIn35mm,
                .count(focalLengthsIn35mm),
                "Millimetres, for the same angle of view on 35 mm film."
            ),
            .optional("flash", \.flash, .name(Flash.self), "The state of the flash."),
            .optional("imageDirection", \.imageDirection, .number(directions), "Degrees clockwise from north."),
            .optional("title", \.title, text, "The title."),
            .optional("headline", \.headline, text, "The headline."),
            .optional("copyright", \.copyright, text, "The copyright notice."),
            .optional("creator", \.creator, text, "The authors, separated by \"; \"."),
            .optional("credit", \.credit, text, "The credit line."),
            .optional("city", \.city, text, "The city."),
            .optional("state", \.state, text, "The state or province."),
            .optional("country", \.country, text, "The country."),
            .optional("label", \.label, text, "The colour or workflow label."),
            .optional("software", \.software, text, "The program or firmware that wrote the file."),
            .defaulted(
                "hierarchicalKeywords",
                \.hierarchicalKeywords,
                .list(of: text, limit: maxKeywords),
                "Keywords with their parents: \"Places|Europe|Alps\".",
                default: []
            ),
            .defaulted(
                "persons",
                \.persons,
                .list(of: .object(Person.self), limit: maxPersons),
                "The people in the image.",
                default: []
            ),
        ]
    )
}

/// The state of the flash.
public enum Flash: String, NumberedName {
    case notFired, fired

    public var number: Int { self == .fired ? 1 : 0 }
}

extension JSONType where Value == Indirect<AssetMetadata> {
    static var metadata: JSONType {
        let inner = JSONType<AssetMetadata>.object(AssetMetadata.self)
        return JSONType(
            schema: inner.schema(),
            decode: { (json: JSON) throws(JSONProblem) in Indirect(try inner.decode(json)) },
            encode: { inner.encode($0.value) }
        )
    }
}

// MARK: - Predicates

extension PredicateKey {
    /// The keys whose values are in ``AssetMetadata``.
    public static let metadataKeys: [PredicateKey] = [
        .aperture, .exposureTime, .iso, .focalLength, .focalLengthIn35mm, .flash, .imageDirection, .title, .headline,
        .copyright, .creator, .credit, .city, .state, .country, .label, .software, .hierarchicalKeywords, .persons,
    ]

    private static let metadataKeySet = Set(metadataKeys)

    /// True if the value of an asset is in ``AssetMetadata``.
    public var isOfMetadata: Bool { Self.metadataKeySet.contains(self) }
}

extension AssetMetadata {
    /// Returns the value of a key; null for keys of other values and for lists.
    func value(of key: PredicateKey) -> PredicateValue {
        switch key {
        case .aperture: .number(aperture)
        case .exposureTime: .number(exposureTime)
        case .iso: .integer(iso)
        case .focalLength: .number(focalLength)
        case .focalLengthIn35mm: .integer(focalLengthIn35mm)
        case .flash: .integer(flash?.number)
        case .imageDirection: .number(imageDirection)
        case .title: .text(title)
        case .headline: .text(headline)
        case .copyright: .text(copyright)
        case .creator: .text(creator)
        case .credit: .text(credit)
        case .city: .text(city)
        case .state: .text(state)
        case .country: .text(country)
        case .label: .text(label)
        case .software: .text(software)
        default: .null
        }
    }
}
