/// Columns for a person's eyes.
struct TextTable {
    enum Alignment { case left, right }

    struct Column {
        let title: String
        var alignment = Alignment.left
        /// The most characters of a cell; what is longer is shortened in the middle.
        var width = Int.max
    }

    let columns: [Column]
    private(set) var rows: [[String]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Adds a row; cells are made printable, missing ones are blank.
    mutating func add(_ cells: [String]) {
        rows.append(
            columns.indices.map { index in
                index < cells.count ? cells[index].printable.shortened(to: columns[index].width) : ""
            }
        )
    }

    /// The lines, the titles first, two spaces between columns and none at the end.
    var lines: [String] {
        let all = [columns.map(\.title)] + rows
        let widths = columns.indices.map { index in all.map { $0[index].count }.max() ?? 0 }
        return all.map { cells in
            var line = ""
            for (index, cell) in cells.enumerated() {
                let padding = String(repeating: " ", count: widths[index] - cell.count)
                line += (index > 0 ? "  " : "") + (columns[index].alignment == .left ? cell + padding : padding + cell)
            }
            while line.last == " " { line.removeLast() }
            return line
        }
    }
}
