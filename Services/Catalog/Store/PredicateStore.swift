import GRDB
import PhotoModel

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A fragment of SQL with its bound values; values never become SQL text.
struct SQLFragment {
    var text: String
    var values: [DatabaseValue]

    init(_ text: String, _ values: [DatabaseValue] = []) {
        self.text = text
        self.values = values
    }

    static func joined(_ pieces: [SQLFragment], _ separator: String) -> SQLFragment {
        SQLFragment(pieces.map(\.text).joined(separator: separator), pieces.flatMap(\.values))
    }

    /// Returns a text as a bound value. SQLite's text binding ends at a zero byte, so a text with one is bound as
    /// bytes.
    static func bound(_ text: String) -> SQLFragment {
        guard text.utf8.contains(0) else { return SQLFragment("?", [text.databaseValue]) }
        return SQLFragment("CAST(? AS TEXT)", [Data(text.utf8).databaseValue])
    }

    static func bound(_ value: PredicateValue) -> SQLFragment {
        switch value {
        case .null: SQLFragment("NULL")
        case .integer(let number): SQLFragment("?", [number.databaseValue])
        case .number(let number): SQLFragment("?", [number.databaseValue])
        case .text(let text): bound(text)
        }
    }

    static func + (left: SQLFragment, right: SQLFragment) -> SQLFragment {
        SQLFragment(left.text + right.text, left.values + right.values)
    }

    static func + (left: SQLFragment, right: String) -> SQLFragment { SQLFragment(left.text + right, left.values) }
    static func + (left: String, right: SQLFragment) -> SQLFragment { SQLFragment(left + right.text, right.values) }
}

/// Translates a predicate to SQL on one table, with the same result as ``Predicate/evaluate(_:)`` for each row.
struct PredicateLowering {
    let table: PredicateTable
    /// True if rows are scanned in the order of another index: conditions are written so that SQLite does not choose an
    /// index for them.
    var isRowByRow = false
    /// True if that index is of visible assets, whose rows need not be read.
    var isInOrder = false

    func lower(_ node: PredicateNode) -> SQLFragment { lower(node, isNegated: false) }

    /// Translates a node.
    ///
    /// - Parameter isNegated: true below a NOT, where "unknown" must not occur: a missing value is made to yield false.
    ///   Elsewhere unknown counts as false anyway, and the plain form lets SQLite use an index.
    private func lower(_ node: PredicateNode, isNegated: Bool) -> SQLFragment {
        // The text must be identical to that of the partial index.
        if table == .asset, let album = node.smartAlbum {
            let condition =
                isInOrder
                ? DerivedSchema.isInside(album) : DerivedSchema.condition(album, isRowByRow ? "+a.smart" : "a.smart")
            return SQLFragment("(" + condition + ")")
        }
        switch node {
        case .constant(let truth): return SQLFragment(truth ? "1" : "0")
        case .comparison(let key, let relation, let value):
            let column = table.column(key)
            switch relation {
            case .equal: return "(\(isRowByRow ? "+" : "")\(column) IS " + .bound(value) + ")"
            case .notEqual: return "(\(column) IS NOT " + .bound(value) + ")"
            default:
                return known("\(column) \(relation.rawValue) " + .bound(value), column, key, isNegated)
            }
        case .between(let key, let lower, let upper):
            let column = table.column(key)
            return known("\(column) BETWEEN " + .bound(lower) + " AND " + .bound(upper), column, key, isNegated)
        case .isIn(let key, let list):
            let column = table.column(key)
            let values = list.filter { $0 != .null }.map(SQLFragment.bound)
            let test = known("\(column) IN (" + .joined(values, ", ") + ")", column, key, isNegated)
            return list.contains(.null) ? "(" + test + " OR \(column) IS NULL)" : test
        case .text(let key, let match):
            return text(match, column: table.column(key), folded: table.foldedColumn(key))
        case .bits(let key, let mask, let isEqual, let value):
            return SQLFragment(
                "((\(table.column(key)) & ?) \(isEqual ? "=" : "<>") ?)",
                [mask.databaseValue, value.databaseValue]
            )
        case .anyKeyword where isRowByRow && node.keywordSearch != nil:
            guard let search = node.keywordSearch else { return SQLFragment("0") }
            return "(EXISTS (SELECT 1 FROM keyword k WHERE k.asset = a.row AND +k.\(search.column) = "
                + .bound(search.word) + "))"
        case .anyKeyword(.isIn(let words)):
            return "(a.row IN (SELECT asset FROM keyword WHERE text IN ("
                + .joined(words.map(SQLFragment.bound), ", ") + ")))"
        case .anyKeyword(.matches(let match)):
            return "(a.row IN (SELECT asset FROM keyword WHERE " + text(match, column: "text", folded: "folded") + "))"
        case .near(let circle): return near(circle)
        case .inside(let box): return inside(box)
        case .and(let operands): return "(" + .joined(operands.map { lower($0, isNegated: isNegated) }, " AND ") + ")"
        case .or(let operands): return "(" + .joined(operands.map { lower($0, isNegated: isNegated) }, " OR ") + ")"
        case .not(let operand): return "(NOT " + lower(operand, isNegated: true) + ")"
        }
    }

    private func known(_ test: SQLFragment, _ column: String, _ key: PredicateKey, _ isNegated: Bool) -> SQLFragment {
        guard isNegated, key.isOptional else { return "(" + test + ")" }
        return "(\(column) IS NOT NULL AND " + test + ")"
    }

    /// Returns a text test that yields 0 or 1, never NULL.
    private func text(_ match: TextMatch, column: String, folded: String?) -> SQLFragment {
        if match.folding.isEmpty { return text(match, in: column) }
        // The pattern of a match is already folded, and so is the column.
        if match.folding == .caseAndDiacritics, let folded {
            return text(TextMatch(match.kind, match.pattern), in: folded)
        }
        return function(match, column)
    }

    private func text(_ match: TextMatch, in column: String) -> SQLFragment {
        let pattern = SQLFragment.bound(match.pattern)
        switch match.kind {
        case .equals: return "(\(column) IS " + pattern + ")"
        case .contains: return "(\(column) IS NOT NULL AND instr(\(column), " + pattern + ") > 0)"
        case .beginsWith:
            let length = match.pattern.unicodeScalars.count.databaseValue
            return "(\(column) IS NOT NULL AND \(column) >= " + pattern
                + SQLFragment(" AND substr(\(column), 1, ?) = ", [length]) + pattern + ")"
        case .endsWith, .like: return function(match, column)
        }
    }

    private func function(_ match: TextMatch, _ column: String) -> SQLFragment {
        // No stored text contains a zero byte.
        guard !match.pattern.utf8.contains(0) else { return SQLFragment("0") }
        let test = SQLFragment(
            "safelight_match(\(column), ?, ?, ",
            [match.kind.rawValue.databaseValue, match.folding.letters.databaseValue]
        )
        return "(" + test + .bound(match.pattern) + "))"
    }

    private func near(_ circle: GeoCircle) -> SQLFragment {
        "(" + inside(circle.boundingBox)
            + SQLFragment(
                " AND safelight_distance(a.latitude, a.longitude, ?, ?) <= ?)",
                [circle.latitude.databaseValue, circle.longitude.databaseValue, circle.radius.databaseValue]
            )
    }

    private func inside(_ box: GeoBox) -> SQLFragment {
        let joint = box.crossesAntimeridian ? "OR" : "AND"
        return SQLFragment(
            "(a.latitude IS NOT NULL AND a.latitude BETWEEN ? AND ? AND (a.longitude >= ? \(joint) a.longitude <= ?))",
            [box.south, box.north, box.west, box.east].map(\.databaseValue)
        )
    }
}

/// The columns of the predicate keys.
enum PredicateTable {
    case asset, collection, list

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
        case .hasAdjustments: "(a.adjustment_format_identifier IS NOT NULL)"
        case .adjustmentFormatIdentifier: "a.adjustment_format_identifier"
        case .latitude: "a.latitude"
        case .longitude: "a.longitude"
        case .keywords, .title, .startDate, .endDate, .estimatedAssetCount: "NULL"
        }
    }
}
