import JSONValue
import PhotoModel

/// Fetches of limited views, whose duration must not reveal which other assets the library has.
extension FetchStore {
    /// Returns the row numbers of the assets on a list, as JSON.
    func listedRows(_ granted: GrantedAssets) throws -> String {
        let rows = try database.all(
            "SELECT row FROM asset WHERE id IN (SELECT value FROM json_each(?)) ORDER BY row",
            jsonList(granted.ids)
        ) { $0.int64(0) }
        return jsonList(rows)
    }

    /// Returns the condition that a listed asset is in a moment of a list of moments. Only the moments of listed
    /// assets are read.
    func momentCondition(_ list: MomentList, _ rows: String) throws -> SQLFragment {
        let sql = "SELECT DISTINCT a.moment FROM json_each(?) g CROSS JOIN asset a ON a.row = g.atom"
        let moments = try database.all(sql + " WHERE a.moment IS NOT NULL", rows) { $0.int64(0) }
            .filter { Moment(key: $0)?.lists.contains(list) == true }
        return SQLFragment("a.moment IN (SELECT atom FROM json_each(?))", [SQLValue(jsonList(moments))])
    }

    /// Returns the table of the assets of a limited grant. All conditions are tested for these assets only, without
    /// indexes of the whole library, so that the duration of a fetch reveals nothing about other assets.
    func listedTable(_ rows: String) -> SQLFragment {
        let tables =
            switch database.dialect {
            case .sqlite: "json_each(?) g CROSS JOIN asset a ON a.row = g.atom"
            // PostgreSQL does not move conditions into a query with an offset.
            case .postgresql: "(SELECT x.* FROM json_each(?) g CROSS JOIN asset x ON x.row = g.atom OFFSET 0) a"
            }
        return SQLFragment(tables, [SQLValue(rows)])
    }
}
