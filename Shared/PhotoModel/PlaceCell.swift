/// A cell of a grid of whole degrees over the earth.
public struct PlaceCell: Sendable, Hashable {
    /// The number of cells between the south pole and this one.
    let row: Int
    /// The number of cells between the antimeridian and this one, eastward.
    let column: Int
    /// The size of a cell in degrees: 1 or 10.
    let degrees: Int

    init(_ location: Location, degrees: Int) {
        self.degrees = degrees
        row = min(180 / degrees - 1, max(0, Int(((location.latitude + 90) / Double(degrees)).rounded(.down))))
        column = max(0, Int(((location.longitude + 180) / Double(degrees)).rounded(.down))) % (360 / degrees)
    }

    private init(row: Int, column: Int, degrees: Int) {
        self.row = row
        self.column = column
        self.degrees = degrees
    }

    /// The cell of ten degrees that contains this one.
    var coarse: PlaceCell { PlaceCell(row: row * degrees / 10, column: column * degrees / 10, degrees: 10) }

    /// The number of the cell, from 1; 0 stands for no location.
    var number: Int { 1 + row * (360 / degrees) + column }

    init?(number: Int, degrees: Int = 1) {
        guard number >= 1, number <= (180 / degrees) * (360 / degrees) else { return nil }
        let (row, column) = (number - 1).quotientAndRemainder(dividingBy: 360 / degrees)
        self.init(row: row, column: column, degrees: degrees)
    }

    /// The centre of the cell.
    public var centre: Location {
        let half = Double(degrees) / 2
        return Location(
            latitude: Double(row * degrees) - 90 + half,
            longitude: Double(column * degrees) - 180 + half
        )
    }
}
