import ImageFormats

/// The primaries of a colour space in the form of ICC profiles: X, Y and Z of each, with white at D50.
struct Colorants {
    typealias All = (red: ICCProfile.Colorant, green: ICCProfile.Colorant, blue: ICCProfile.Colorant)

    let red: ICCProfile.Colorant
    let green: ICCProfile.Colorant
    let blue: ICCProfile.Colorant

    /// Adapts primaries to D50 by the Bradford transform (ICC.1:2022, annex E); nil if they do not span a colour space.
    init?(_ primaries: CodedColours.Primaries) {
        func light(_ colour: CodedColours.Chromaticity) -> [Double] {
            [colour.x / colour.y, 1, (1 - colour.x - colour.y) / colour.y]
        }
        let columns = Matrix(columns: [primaries.red, primaries.green, primaries.blue].map(light))
        let white = light(primaries.white)
        guard let inverse = columns.inverse, let back = Self.bradford.inverse else { return nil }
        // The weights of the primaries whose sum is white.
        let weights = inverse * white
        let (from, to) = (Self.bradford * white, Self.bradford * Self.d50)
        guard weights.allSatisfy({ $0 > 0 }), from.allSatisfy({ $0 > 0 }) else { return nil }
        let adapted = (0..<3).map { index -> ICCProfile.Colorant in
            let cone = Self.bradford * columns.column(index).map { $0 * weights[index] }
            let value = back * zip(cone, zip(to, from)).map { $0 * $1.0 / $1.1 }
            return (value[0], value[1], value[2])
        }
        (red, green, blue) = (adapted[0], adapted[1], adapted[2])
    }

    private static let d50 = [0.9642, 1, 0.8249]
    private static let bradford = Matrix(rows: [
        [0.8951, 0.2664, -0.1614], [-0.7502, 1.7135, 0.0367], [0.0389, -0.0685, 1.0296],
    ])

    private struct Matrix {
        let rows: [[Double]]

        init(rows: [[Double]]) { self.rows = rows }

        init(columns: [[Double]]) { rows = (0..<3).map { row in columns.map { $0[row] } } }

        func column(_ index: Int) -> [Double] { rows.map { $0[index] } }

        static func * (matrix: Matrix, vector: [Double]) -> [Double] {
            matrix.rows.map { zip($0, vector).map(*).reduce(0, +) }
        }

        /// The inverse, by cofactors; nil for a singular matrix.
        var inverse: Matrix? {
            func cofactor(_ row: Int, _ column: Int) -> Double {
                let (r1, r2, c1, c2) = ((row + 1) % 3, (row + 2) % 3, (column + 1) % 3, (column + 2) % 3)
                return rows[r1][c1] * rows[r2][c2] - rows[r1][c2] * rows[r2][c1]
            }
            let determinant = (0..<3).map { rows[0][$0] * cofactor(0, $0) }.reduce(0, +)
            guard abs(determinant) > 1e-6 else { return nil }
            return Matrix(rows: (0..<3).map { row in (0..<3).map { cofactor($0, row) / determinant } })
        }
    }
}
