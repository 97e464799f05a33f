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
    static func asset(_ row: Row) throws -> Asset {
        var asset = Asset(
            id: try identifier(row[1]),
            revision: Revision(row[3]),
            contentRevision: Revision(row[4])
        )
        asset.mediaType = try named(row[5])
        asset.mediaSubtypes = MediaSubtypes(rawValue: row[6])
        asset.playbackStyle = try named(row[7])
        asset.playbackVariation = PlaybackVariation(rawValue: row[8]) ?? .none
        asset.sourceType = try named(row[9])
        asset.contentType = row[10]
        asset.pixelWidth = row[11]
        asset.pixelHeight = row[12]
        asset.duration = row[13]
        asset.creationDate = row[14]
        asset.creationOffset = row[15]
        asset.modificationDate = row[16]
        asset.contentModificationDate = row[17]
        asset.addedDate = row[18]
        asset.trashedDate = row[19]
        if let latitude: Double = row[20], let longitude: Double = row[21] {
            asset.location = Location(latitude: latitude, longitude: longitude, altitude: row[22])
        }
        asset.isFavorite = row[23]
        asset.isHidden = row[24]
        asset.burstIdentifier = row[25]
        asset.representsBurst = row[26]
        asset.burstSelectionTypes = BurstSelectionTypes(rawValue: row[27])
        asset.rating = row[28]
        asset.caption = row[29]
        asset.originalFilename = row[31]
        asset.cameraMake = row[33]
        asset.cameraModel = row[35]
        asset.lensModel = row[37]
        asset.adjustmentFormatIdentifier = row[39]
        asset.adjustmentFormatVersion = row[40]
        asset.adjustmentDate = row[41]
        asset.sharpness = row[44]
        asset.isRecentlyAdded = (row[42] as Int) & SmartAlbum.recentlyAdded.bit != 0
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

    static func marks(_ row: Row) -> Marks { Marks(rawValue: row[45]) }

    static func identifier(_ text: String) throws -> ObjectID {
        guard let id = ObjectID(text) else { throw DamagedRow("\(text.prefix(64)) is not an identifier") }
        return id
    }

    static func named<Name: NumberedName>(_ number: Int) throws -> Name {
        guard let name = Name(number: number) else { throw DamagedRow("\(number) is not a \(Name.self)") }
        return name
    }

    static func orderKey(_ text: String) throws -> OrderKey {
        guard let key = OrderKey(text) else { throw DamagedRow("\(text.prefix(64)) is not an order key") }
        return key
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
