/// A text table with aligned columns.
struct TextTable {
    enum Alignment { case left, right }

    struct Column {
        let title: String
        var alignment = Alignment.left
        /// The maximum number of characters in a cell; longer text is shortened in the middle.
        var width = Int.max
    }

    let columns: [Column]
    private(set) var rows: [[String]] = []

    init(_ columns: [Column]) {
        self.columns = columns
    }

    /// Adds a row. Cells are made printable; missing cells are blank.
    mutating func add(_ cells: [String]) {
        rows.append(
            columns.indices.map { index in
                index < cells.count ? cells[index].printable.shortened(to: columns[index].width) : ""
            }
        )
    }

    /// The lines, beginning with the titles; two spaces between columns, no trailing spaces.
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
