import PhotoModel

/// Updates the columns of the table `asset`, for one asset after the other.
///
/// Only the columns that differ are set, since SQLite writes an index only if one of its columns is set. The assets of
/// one transaction usually change in the same columns, so the last statement is used again.
struct ColumnUpdate: ~Copyable {
    private let database: SQLConnection
    /// The columns that the statement sets, as bits by their positions in ``AssetRowMapping/columns``.
    private var bits: UInt64 = 0
    private var statement: SQLStatement?

    init(_ database: SQLConnection) { self.database = database }

    /// - Throws: ``DamagedRow`` if there is no row with the number
    mutating func update(_ before: Asset, _ after: Asset, _ row: Int64) throws {
        let differing = AssetRowMapping.differences(before, after)
        guard differing != 0 else { return }
        var current: SQLStatement
        if let last = statement.take(), bits == differing {
            current = last
        } else {
            current = try SQLStatement(AssetRowMapping.update(of: differing), database)
            bits = differing
        }
        var left = differing
        while left != 0 {
            AssetRowMapping.columns[left.trailingZeroBitCount].bind(after, to: &current)
            left &= left - 1
        }
        current.bind(row)
        let count = try current.runCounting()
        statement = consume current
        guard count == 1 else { throw DamagedRow("\(after.id) has no row in the database") }
    }
}
