import PhotoModel

/// A mapping between ``Asset`` values and rows of the table `asset`.
enum AssetRowMapping {
    /// Every column except the row number, in the order in which rows are read. The folded copy of a text follows the
    /// text.
    static let columns: [AssetColumn] = [
        AssetColumn("id", text: { $0.id.text }),
        AssetColumn("visible", flag: { $0.isVisible }),
        AssetColumn("revision", integer: { $0.revision.sequence }),
        AssetColumn("content_revision", integer: { $0.contentRevision.sequence }),
        AssetColumn("media_type", integer: { Int64($0.mediaType.number) }),
        AssetColumn("media_subtypes", integer: { Int64($0.mediaSubtypes.rawValue) }),
        AssetColumn("playback_style", integer: { Int64($0.playbackStyle.number) }),
        AssetColumn("playback_variation", text: { $0.playbackVariation.rawValue }),
        AssetColumn("source_type", integer: { Int64($0.sourceType.number) }),
        AssetColumn("content_type", text: { $0.contentType }),
        AssetColumn("pixel_width", integer: { Int64($0.pixelWidth) }),
        AssetColumn("pixel_height", integer: { Int64($0.pixelHeight) }),
        AssetColumn("duration", integer: { $0.duration }),
        AssetColumn("creation_date", integer: { $0.creationDate }),
        AssetColumn("creation_offset", integer: { $0.creationOffset.map(Int64.init) }),
        AssetColumn("modification_date", integer: { $0.modificationDate }),
        AssetColumn("content_modification_date", integer: { $0.contentModificationDate }),
        AssetColumn("added_date", integer: { $0.addedDate }),
        AssetColumn("trashed_date", integer: { $0.trashedDate }),
        AssetColumn("latitude", number: { $0.location?.latitude }),
        AssetColumn("longitude", number: { $0.location?.longitude }),
        AssetColumn("altitude", number: { $0.location?.altitude }),
        AssetColumn("is_favorite", flag: { $0.isFavorite }),
        AssetColumn("is_hidden", flag: { $0.isHidden }),
        AssetColumn("burst_identifier", text: { $0.burstIdentifier }),
        AssetColumn("represents_burst", flag: { $0.representsBurst }),
        AssetColumn("burst_selection_types", integer: { Int64($0.burstSelectionTypes.rawValue) }),
        AssetColumn("rating", integer: { Int64($0.rating) }),
        AssetColumn("caption", text: { $0.caption }),
        AssetColumn("caption_folded", folded: { $0.caption }),
        AssetColumn("original_filename", text: { $0.originalFilename }),
        AssetColumn("original_filename_folded", folded: { $0.originalFilename }),
        AssetColumn("camera_make", text: { $0.cameraMake }),
        AssetColumn("camera_make_folded", folded: { $0.cameraMake }),
        AssetColumn("camera_model", text: { $0.cameraModel }),
        AssetColumn("camera_model_folded", folded: { $0.cameraModel }),
        AssetColumn("lens_model", text: { $0.lensModel }),
        AssetColumn("lens_model_folded", folded: { $0.lensModel }),
        AssetColumn("adjustment_format_identifier", text: { $0.adjustmentFormatIdentifier }),
        AssetColumn("adjustment_format_version", text: { $0.adjustmentFormatVersion }),
        AssetColumn("adjustment_date", integer: { $0.adjustmentDate }),
        AssetColumn("smart", integer: { Int64(DerivedSchema.smart($0)) }),
        AssetColumn("moment", integer: { $0.moment?.key }),
        AssetColumn("sharpness", number: { $0.sharpness }),
        AssetColumn("marks", integer: { Int64(Marks($0).rawValue) }),
        AssetColumn("smart_favorites", integer: { Int64(DerivedSchema.favorites($0)) }),
    ]

    static let insertion = """
        INSERT INTO asset (\(columns.map(\.name).joined(separator: ", ")))
        VALUES (\(columns.map { _ in "?" }.joined(separator: ", ")))
        """

    /// The select list: the row number, then every column in the order of ``columns``.
    static let selection = "a.row, " + columns.map { "a.\($0.name)" }.joined(separator: ", ")

    /// Returns the columns in which two states of an asset may differ, as bits by their positions in ``columns``.
    static func differences(_ before: Asset, _ after: Asset) -> UInt64 {
        var bits: UInt64 = 0
        for index in columns.indices where columns[index].differs(before, after) { bits |= 1 << UInt64(index) }
        return bits
    }

    /// Returns the statement that sets some columns, as bits by their positions in ``columns``, of the row with a
    /// number.
    static func updateStatement(of bits: UInt64) -> String {
        var sql = "UPDATE asset SET "
        for index in columns.indices where bits & (1 << UInt64(index)) != 0 {
            sql += columns[index].name
            sql += " = ?, "
        }
        sql.removeLast(2)
        return sql + " WHERE row = ?"
    }

    /// Reads an asset without the parts that other tables hold: resources, keywords, memberships and metadata.
    ///
    /// - Parameter row: a row of ``selection``
    /// - Throws: ``DamagedRow`` if a stored value is not valid
    static func asset(_ row: SQLRow) throws -> Asset {
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
        asset.isRecentlyAdded = row.int(smartIndex) & SmartAlbum.recentlyAdded.bit != 0
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

        /// The expression that is 1 if the asset `a` has the mark, else 0.
        var condition: String { "CAST(((a.marks & \(rawValue)) <> 0) AS integer)" }
    }

    /// The indexes of the columns `smart` and `marks` in ``selection``.
    private static let smartIndex: Int32 = 42
    private static let marksIndex: Int32 = 45

    static func marks(_ row: SQLRow) -> Marks { Marks(rawValue: row.int(marksIndex)) }

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

/// A column of the table `asset` and the property of the asset that it stores.
struct AssetColumn: Sendable {
    let name: String
    private let value: Value

    private enum Value: Sendable {
        case integer(@Sendable (Asset) -> Int64?)
        case number(@Sendable (Asset) -> Double?)
        case text(@Sendable (Asset) -> String?)
        /// A folded copy of a text. Folding is expensive, so it is done only if the text is written.
        case folded(@Sendable (Asset) -> String?)
    }

    init(_ name: String, integer: @escaping @Sendable (Asset) -> Int64?) {
        (self.name, value) = (name, .integer(integer))
    }

    init(_ name: String, flag: @escaping @Sendable (Asset) -> Bool) {
        (self.name, value) = (name, .integer { flag($0) ? 1 : 0 })
    }

    init(_ name: String, number: @escaping @Sendable (Asset) -> Double?) {
        (self.name, value) = (name, .number(number))
    }

    init(_ name: String, text: @escaping @Sendable (Asset) -> String?) {
        (self.name, value) = (name, .text(text))
    }

    init(_ name: String, folded: @escaping @Sendable (Asset) -> String?) {
        (self.name, value) = (name, .folded(folded))
    }

    /// Returns true if two states of an asset may have different values in the column.
    func differs(_ before: Asset, _ after: Asset) -> Bool {
        switch value {
        case .integer(let property): property(before) != property(after)
        case .number(let property): property(before) != property(after)
        case .text(let property), .folded(let property): property(before) != property(after)
        }
    }

    func bind(_ asset: Asset, to statement: inout SQLStatement) {
        switch value {
        case .integer(let property): statement.bind(property(asset))
        case .number(let property): statement.bind(property(asset))
        case .text(let property): statement.bind(property(asset))
        case .folded(let property): statement.bind(property(asset).map(folded))
        }
    }
}
