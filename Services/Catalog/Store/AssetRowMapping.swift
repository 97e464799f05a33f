import GRDB
import PhotoModel

/// A mapping between ``Asset`` values and rows of the table `asset`.
enum AssetRowMapping {
    /// Every column except the row number, in the order used by ``values(of:)`` and ``asset(_:)``.
    static let columns = [
        "id", "visible", "revision", "content_revision", "media_type", "media_subtypes", "playback_style",
        "playback_variation", "source_type", "content_type", "pixel_width", "pixel_height", "duration",
        "creation_date", "creation_offset", "modification_date", "content_modification_date", "added_date",
        "trashed_date", "latitude", "longitude", "altitude", "is_favorite", "is_hidden", "burst_identifier",
        "represents_burst", "burst_selection_types", "rating", "caption", "caption_folded", "original_filename",
        "original_filename_folded", "camera_make", "camera_make_folded", "camera_model", "camera_model_folded",
        "lens_model", "lens_model_folded", "adjustment_format_identifier", "adjustment_format_version",
        "adjustment_date", "smart", "moment", "sharpness", "marks",
    ]

    static let insertion =
        "INSERT INTO asset (\(columns.joined(separator: ", "))) VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))"

    /// The select list: the row number, then every column in the order of ``columns``.
    static let selection = "a.row, " + columns.map { "a.\($0)" }.joined(separator: ", ")

    /// Returns true if two assets are equal in every text that has a folded copy.
    static func haveSameTexts(_ one: Asset, _ other: Asset) -> Bool {
        one.caption == other.caption && one.originalFilename == other.originalFilename
            && one.cameraMake == other.cameraMake && one.cameraModel == other.cameraModel
            && one.lensModel == other.lensModel
    }

    /// Returns the column values of an asset, in the order of ``columns``.
    ///
    /// - Parameter foldsTexts: if false, the folded copies of texts are NULL
    static func values(of asset: Asset, foldsTexts: Bool = true) -> [DatabaseValue] {
        func folded(_ text: String?) -> DatabaseValue {
            foldsTexts ? value(text.map(PhotoModel.folded)) : .null
        }
        return [
            asset.id.text.databaseValue, asset.isVisible.databaseValue, asset.revision.sequence.databaseValue,
            asset.contentRevision.sequence.databaseValue, asset.mediaType.number.databaseValue,
            asset.mediaSubtypes.rawValue.databaseValue, asset.playbackStyle.number.databaseValue,
            asset.playbackVariation.rawValue.databaseValue, asset.sourceType.number.databaseValue,
            asset.contentType.databaseValue, asset.pixelWidth.databaseValue, asset.pixelHeight.databaseValue,
            asset.duration.databaseValue, value(asset.creationDate), value(asset.creationOffset),
            asset.modificationDate.databaseValue, asset.contentModificationDate.databaseValue,
            asset.addedDate.databaseValue, value(asset.trashedDate), value(asset.location?.latitude),
            value(asset.location?.longitude), value(asset.location?.altitude), asset.isFavorite.databaseValue,
            asset.isHidden.databaseValue, value(asset.burstIdentifier), asset.representsBurst.databaseValue,
            asset.burstSelectionTypes.rawValue.databaseValue, asset.rating.databaseValue, value(asset.caption),
            folded(asset.caption), value(asset.originalFilename), folded(asset.originalFilename),
            value(asset.cameraMake), folded(asset.cameraMake), value(asset.cameraModel),
            folded(asset.cameraModel), value(asset.lensModel), folded(asset.lensModel),
            value(asset.adjustmentFormatIdentifier), value(asset.adjustmentFormatVersion),
            value(asset.adjustmentDate), SmartAlbum.mask(of: asset).databaseValue, value(asset.moment?.key),
            value(asset.sharpness), Marks(asset).rawValue.databaseValue,
        ]
    }

    private static func value(_ value: (some DatabaseValueConvertible)?) -> DatabaseValue {
        value?.databaseValue ?? .null
    }

    /// Reads an asset without the parts that other tables hold: resources, keywords, memberships and metadata.
    ///
    /// - Throws: ``DamagedRow`` if a stored value is not valid
    static func asset(_ row: StatementColumns) throws -> Asset {
        var asset = Asset(
            id: try identifier(row.text(1)),
            revision: Revision(row.int64(3)),
            contentRevision: Revision(row.int64(4))
        )
        asset.mediaType = try mediaType(row.int(5))
        asset.mediaSubtypes = MediaSubtypes(rawValue: row.int(6))
        asset.playbackStyle = try playbackStyle(row.int(7))
        asset.playbackVariation = PlaybackVariation(rawValue: row.text(8)) ?? .none
        asset.sourceType = try sourceType(row.int(9))
        asset.contentType = row.text(10)
        asset.pixelWidth = row.int(11)
        asset.pixelHeight = row.int(12)
        asset.duration = row.int64(13)
        asset.creationDate = row.optionalInt64(14)
        asset.creationOffset = row.optionalInt(15)
        asset.modificationDate = row.int64(16)
        asset.contentModificationDate = row.int64(17)
        asset.addedDate = row.int64(18)
        asset.trashedDate = row.optionalInt64(19)
        if let latitude = row.optionalDouble(20), let longitude = row.optionalDouble(21) {
            asset.location = Location(latitude: latitude, longitude: longitude, altitude: row.optionalDouble(22))
        }
        asset.isFavorite = row.flag(23)
        asset.isHidden = row.flag(24)
        asset.burstIdentifier = row.optionalText(25)
        asset.representsBurst = row.flag(26)
        asset.burstSelectionTypes = BurstSelectionTypes(rawValue: row.int(27))
        asset.rating = row.int(28)
        asset.caption = row.optionalText(29)
        asset.originalFilename = row.optionalText(31)
        asset.cameraMake = row.optionalText(33)
        asset.cameraModel = row.optionalText(35)
        asset.lensModel = row.optionalText(37)
        asset.adjustmentFormatIdentifier = row.optionalText(39)
        asset.adjustmentFormatVersion = row.optionalText(40)
        asset.adjustmentDate = row.optionalInt64(41)
        asset.sharpness = row.optionalDouble(44)
        asset.isRecentlyAdded = row.int(42) & SmartAlbum.recentlyAdded.bit != 0
        let marks = marks(row)
        asset.hasOnlyModificationDate = marks.contains(.hasOnlyModificationDate)
        asset.isCreationOffsetDerived = marks.contains(.isCreationOffsetDerived)
        return asset
    }

    /// Rare properties, in one column.
    struct Marks: OptionSet {
        let rawValue: Int

        static let hasOnlyModificationDate = Marks(rawValue: 1)
        static let isCreationOffsetDerived = Marks(rawValue: 2)
        /// The table `metadata` has a row of the asset.
        static let hasMetadata = Marks(rawValue: 4)

        /// Returns the condition that an asset `a` has a mark.
        var condition: String { "((a.marks & \(rawValue)) <> 0)" }
    }

    static func marks(_ row: StatementColumns) -> Marks { Marks(rawValue: row.int(45)) }

    static func identifier(_ text: String) throws -> ObjectID {
        guard let id = ObjectID(text) else { throw DamagedRow("\(text.prefix(64)) is not an identifier") }
        return id
    }

    static func named<Name: NumberedName>(_ number: Int) throws -> Name {
        guard let name = Name(number: number) else { throw DamagedRow("\(number) is not a \(Name.self)") }
        return name
    }

    private static let mediaType = NumberedNames<MediaType>()
    private static let playbackStyle = NumberedNames<PlaybackStyle>()
    private static let sourceType = NumberedNames<SourceType>()
    static let resourceType = NumberedNames<ResourceType>()

    static func orderKey(_ text: String) throws -> OrderKey {
        guard let key = OrderKey(text) else { throw DamagedRow("\(text.prefix(64)) is not an order key") }
        return key
    }
}

/// The cases of an enumeration by their numbers, for columns that every asset has.
struct NumberedNames<Name: NumberedName> {
    private let names: [Name?]

    init() {
        let numbers = Name.allCases.map(\.number)
        names = (0...(numbers.max() ?? 0)).map { Name(number: $0) }
    }

    func callAsFunction(_ number: Int) throws -> Name {
        guard names.indices.contains(number), let name = names[number] else {
            throw DamagedRow("\(number) is not a \(Name.self)")
        }
        return name
    }
}

/// An error for a stored value that this version cannot read.
struct DamagedRow: Error, CustomStringConvertible {
    let description: String
    init(_ description: String) { self.description = description }
}

extension Asset {
    /// True if a fetch of an album without options includes the asset.
    var isShown: Bool { !isHidden && trashedDate == nil && isVisibleInBurst }

    /// True if a fetch of the library without options includes the asset.
    var isVisible: Bool { isShown && sourceType == .typeUserLibrary }
}

extension Asset {
    /// True if a fetch of the hidden assets without other options includes the asset.
    var isShownToHiddenFetch: Bool {
        isHidden && trashedDate == nil && isVisibleInBurst && sourceType == .typeUserLibrary
    }
}

extension AssetRowMapping.Marks {
    init(_ asset: Asset) {
        self = []
        if asset.hasOnlyModificationDate { insert(.hasOnlyModificationDate) }
        if asset.isCreationOffsetDerived { insert(.isCreationOffsetDerived) }
        if asset.metadata != nil { insert(.hasMetadata) }
    }
}
