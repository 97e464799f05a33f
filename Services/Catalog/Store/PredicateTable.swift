import PhotoModel

/// The tables of entities, and the columns of the predicate keys. Queries use the aliases `a`, `c` and `l` for the
/// tables.
enum PredicateTable {
    case asset, collection, list

    /// Returns the column of a key, as an expression; NULL if the table has none.
    func column(_ key: PredicateKey) -> String {
        switch self {
        case .asset: assetColumn(key)
        case .collection: collectionColumn(key, "c")
        case .list: collectionColumn(key, "l")
        }
    }

    /// Returns the column with the text folded for case and diacritics; nil if the key has none.
    func foldedColumn(_ key: PredicateKey) -> String? {
        switch key {
        case .title where self == .asset: nil
        case .caption, .originalFilename, .cameraMake, .cameraModel, .lensModel, .title: column(key) + "_folded"
        default: nil
        }
    }

    private func collectionColumn(_ key: PredicateKey, _ table: String) -> String {
        switch key {
        case .localIdentifier: "\(table).id"
        case .title: "\(table).title"
        case .startDate: "\(table).start_date"
        case .endDate: "\(table).end_date"
        case .estimatedAssetCount: table == "c" ? "c.asset_count" : "NULL"
        default: "NULL"
        }
    }

    private func assetColumn(_ key: PredicateKey) -> String {
        switch key {
        case .localIdentifier: "a.id"
        case .mediaType: "a.media_type"
        case .mediaSubtypes: "a.media_subtypes"
        case .playbackStyle: "a.playback_style"
        case .sourceType: "a.source_type"
        case .contentType: "a.content_type"
        case .pixelWidth: "a.pixel_width"
        case .pixelHeight: "a.pixel_height"
        case .duration: "a.duration"
        case .creationDate: "a.creation_date"
        case .modificationDate: "a.modification_date"
        case .contentModificationDate: "a.content_modification_date"
        case .addedDate: "a.added_date"
        case .trashedDate: "a.trashed_date"
        case .isFavorite: "a.is_favorite"
        case .isHidden: "a.is_hidden"
        case .burstIdentifier: "a.burst_identifier"
        case .representsBurst: "a.represents_burst"
        case .burstSelectionTypes: "a.burst_selection_types"
        case .rating: "a.rating"
        case .caption: "a.caption"
        case .originalFilename: "a.original_filename"
        case .cameraMake: "a.camera_make"
        case .cameraModel: "a.camera_model"
        case .lensModel: "a.lens_model"
        case .hasAdjustments: "CAST((a.adjustment_format_identifier IS NOT NULL) AS integer)"
        case .adjustmentFormatIdentifier: "a.adjustment_format_identifier"
        case .latitude: "a.latitude"
        case .longitude: "a.longitude"
        case .hasOnlyModificationDate: AssetRowMapping.Marks.hasOnlyModificationDate.condition
        case .isCreationOffsetDerived: AssetRowMapping.Marks.isCreationOffsetDerived.condition
        case .isLocal:
            "CAST((NOT EXISTS (SELECT 1 FROM resource r WHERE r.asset = a.row AND safelight_is_local(r.digest) = 0)) AS integer)"
        case .keywords, .startDate, .endDate, .estimatedAssetCount: "NULL"
        case .aperture, .exposureTime, .iso, .focalLength, .focalLengthIn35mm, .flash, .imageDirection, .title,
            .headline, .copyright, .creator, .credit, .city, .state, .country, .label, .software,
            .hierarchicalKeywords, .persons:
            MetadataStore.column(key) ?? "NULL"
        }
    }
}
