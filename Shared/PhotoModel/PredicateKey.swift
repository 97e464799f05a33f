/// The properties that predicates and sort descriptors may use: those of PhotoKit and some of Safelight's own.
///
/// The list is closed: code that stores or evaluates them switches over all cases.
public enum PredicateKey: String, Sendable, CaseIterable, Hashable {
    case localIdentifier

    case mediaType, mediaSubtypes, playbackStyle, sourceType, contentType
    case pixelWidth, pixelHeight, duration
    case creationDate, modificationDate, contentModificationDate, addedDate, trashedDate
    case isFavorite, isHidden
    case burstIdentifier, representsBurst, burstSelectionTypes
    case rating, caption, keywords, originalFilename
    case cameraMake, cameraModel, lensModel
    case hasAdjustments, adjustmentFormatIdentifier
    case hasOnlyModificationDate, isCreationOffsetDerived
    /// Not part of the history: see ``Fetch/dependsOnLocalFiles``.
    case isLocal
    case aperture, exposureTime, iso, focalLength, focalLengthIn35mm, flash, imageDirection
    case headline, copyright, creator, credit, city, state, country, label, software
    case hierarchicalKeywords, persons
    case latitude = "location.latitude"
    case longitude = "location.longitude"

    case title, startDate, endDate, estimatedAssetCount

    /// The canonical name on the wire.
    public var name: String { rawValue }

    /// Returns other accepted names in a class, including PhotoKit's.
    public func aliases(in entityClass: EntityClass) -> [String] {
        switch self {
        case _ where isOfMetadata && entityClass == .asset: ["metadata." + name]
        case .localIdentifier: ["SELF", "id"]
        case .isFavorite: ["favorite"]
        case .isHidden: ["hidden"]
        case .title: ["localizedTitle"]
        default: []
        }
    }

    /// Looks up a key of a class by name or alias; `nil` if the class has no such key.
    public init?(named name: String, of entityClass: EntityClass) {
        guard let key = entityClass.keysByName[name] else { return nil }
        self = key
    }

    /// The type of the key's values.
    public var type: PredicateType {
        switch self {
        case .localIdentifier: .id
        case .mediaType: .name(MediaType.self)
        case .playbackStyle: .name(PlaybackStyle.self)
        case .sourceType: .name(SourceType.self)
        case .mediaSubtypes: .bits(MediaSubtypes.self)
        case .burstSelectionTypes: .bits(BurstSelectionTypes.self)
        case .pixelWidth, .pixelHeight, .rating, .estimatedAssetCount, .iso, .focalLengthIn35mm: .integer
        case .flash: .name(Flash.self)
        case .duration: .duration
        case .latitude, .longitude, .aperture, .exposureTime, .focalLength, .imageDirection: .number
        case .creationDate, .modificationDate, .contentModificationDate, .addedDate, .trashedDate, .startDate,
            .endDate:
            .date
        case .isFavorite, .isHidden, .representsBurst, .hasAdjustments, .hasOnlyModificationDate,
            .isCreationOffsetDerived, .isLocal:
            .flag
        case .contentType, .burstIdentifier, .caption, .originalFilename, .cameraMake, .cameraModel, .lensModel,
            .adjustmentFormatIdentifier, .title, .headline, .copyright, .creator, .credit, .city, .state, .country,
            .label, .software:
            .text
        case .keywords, .hierarchicalKeywords, .persons: .textList
        }
    }

    /// True if a fetch may be sorted by the key: all keys except lists and identifiers, whose order has no meaning, and
    /// `isLocal`, which is not part of the history.
    public var isSortable: Bool {
        switch type {
        case .flag where self == .isLocal: false
        case .id, .textList: false
        default: true
        }
    }

    /// True if the property may be missing.
    public var isOptional: Bool {
        switch self {
        case .creationDate, .trashedDate, .burstIdentifier, .caption, .originalFilename, .cameraMake, .cameraModel,
            .lensModel, .adjustmentFormatIdentifier, .latitude, .longitude, .title, .startDate, .endDate,
            .estimatedAssetCount:
            true
        default: isOfMetadata && type != .textList
        }
    }
}

extension EntityClass {
    /// The keys of the class, in the order in which error messages list them.
    public var keys: [PredicateKey] {
        switch self {
        case .asset: PredicateKey.allCases.filter { !Self.collectionKeys.contains($0) || $0.isOfMetadata }
        case .assetCollection: [.localIdentifier] + Self.collectionKeys
        case .collectionList, .collection: [.localIdentifier, .title, .startDate, .endDate]
        }
    }

    private static let collectionKeys: [PredicateKey] = [.title, .startDate, .endDate, .estimatedAssetCount]

    /// The keys by name and alias.
    var keysByName: [String: PredicateKey] { Self.names[self] ?? [:] }

    private static let names: [EntityClass: [String: PredicateKey]] = Dictionary(
        uniqueKeysWithValues: allCases.map { entityClass in
            let pairs = entityClass.keys.flatMap { key in
                ([key.name] + key.aliases(in: entityClass)).map { ($0, key) }
            }
            return (entityClass, Dictionary(pairs, uniquingKeysWith: { first, _ in first }))
        }
    )
}

/// An entity that predicates and sort descriptors can read.
public protocol PredicateSubject {
    /// The identifier, the last tie-break of every order.
    var id: ObjectID { get }
    /// The location for geographic conditions; nil if there is none.
    var location: Location? { get }

    /// Returns the texts of a key whose type is `textList`; none if the class does not have the key.
    func texts(of key: PredicateKey) -> [String]

    /// Returns the value of a key; null if the class does not have the key.
    func value(of key: PredicateKey) -> PredicateValue
}

extension Asset: PredicateSubject {
    public func texts(of key: PredicateKey) -> [String] {
        switch key {
        case .keywords: keywords
        case .hierarchicalKeywords: storedMetadata?.value.hierarchicalKeywords ?? []
        case .persons: storedMetadata?.value.persons.map(\.name) ?? []
        default: []
        }
    }

    public func value(of key: PredicateKey) -> PredicateValue {
        switch key {
        case .localIdentifier: .text(id.text)
        case .mediaType: .integer(mediaType.number)
        case .mediaSubtypes: .integer(mediaSubtypes.rawValue)
        case .playbackStyle: .integer(playbackStyle.number)
        case .sourceType: .integer(sourceType.number)
        case .contentType: .text(contentType)
        case .pixelWidth: .integer(pixelWidth)
        case .pixelHeight: .integer(pixelHeight)
        case .duration: .integer(duration)
        case .creationDate: .integer(creationDate)
        case .modificationDate: .integer(modificationDate)
        case .contentModificationDate: .integer(contentModificationDate)
        case .addedDate: .integer(addedDate)
        case .trashedDate: .integer(trashedDate)
        case .isFavorite: .flag(isFavorite)
        case .isHidden: .flag(isHidden)
        case .burstIdentifier: .text(burstIdentifier)
        case .representsBurst: .flag(representsBurst)
        case .burstSelectionTypes: .integer(burstSelectionTypes.rawValue)
        case .rating: .integer(rating)
        case .caption: .text(caption)
        case .originalFilename: .text(originalFilename)
        case .cameraMake: .text(cameraMake)
        case .cameraModel: .text(cameraModel)
        case .lensModel: .text(lensModel)
        case .hasAdjustments: .flag(hasAdjustments)
        case .adjustmentFormatIdentifier: .text(adjustmentFormatIdentifier)
        case .latitude: .number(location?.latitude)
        case .longitude: .number(location?.longitude)
        case .hasOnlyModificationDate: .flag(hasOnlyModificationDate)
        case .isCreationOffsetDerived: .flag(isCreationOffsetDerived)
        case .isLocal: .flag(resources.allSatisfy(\.isLocallyAvailable))
        case .keywords, .startDate, .endDate, .estimatedAssetCount: .null
        case .aperture, .exposureTime, .iso, .focalLength, .focalLengthIn35mm, .flash, .imageDirection, .title,
            .headline, .copyright, .creator, .credit, .city, .state, .country, .label, .software,
            .hierarchicalKeywords, .persons:
            storedMetadata?.value.value(of: key) ?? .null
        }
    }
}

extension AssetCollection: PredicateSubject {
    public var location: Location? { nil }

    public func texts(of key: PredicateKey) -> [String] { [] }

    public func value(of key: PredicateKey) -> PredicateValue {
        switch key {
        case .localIdentifier: .text(id.text)
        case .title: .text(title)
        case .startDate: .integer(startDate)
        case .endDate: .integer(endDate)
        case .estimatedAssetCount: .integer(estimatedAssetCount)
        default: .null
        }
    }
}

extension CollectionList: PredicateSubject {
    public var location: Location? { nil }

    public func texts(of key: PredicateKey) -> [String] { [] }

    public func value(of key: PredicateKey) -> PredicateValue {
        switch key {
        case .localIdentifier: .text(id.text)
        case .title: .text(title)
        case .startDate: .integer(startDate)
        case .endDate: .integer(endDate)
        default: .null
        }
    }
}
