import CPlaceNames
import ImageFormats

/// The names of the largest place and the country of every cell of one degree, from GeoNames.
///
/// Names are GeoNames' main names: English for countries and many large cities, else those of the country.
public struct PlaceNames: Sendable {
    /// The table that is compiled into the program; empty if it cannot be read.
    public static let table: PlaceNames = {
        var count = 0
        guard let start = safelight_place_names(&count) else { return PlaceNames("") }
        let packed = Array(UnsafeBufferPointer(start: start, count: count))
        let text = Inflater.bytes(packed[...], limit: 4 << 20) ?? []
        return PlaceNames(String(decoding: text, as: UTF8.self))
    }()

    /// The names by the number of the cell.
    private let names: [Int: [String]]

    /// - Parameter text: the table in the form that `make-table.py` describes
    init(_ text: String) {
        var names: [Int: [String]] = [:]
        for line in text.utf8.split(separator: UInt8(ascii: "\n")) {
            let fields = line.split(separator: UInt8(ascii: "\t"), omittingEmptySubsequences: false)
            guard fields.count == 4, let south = Int(Substring(fields[0])), let west = Int(Substring(fields[1])) else {
                continue
            }
            names[Self.number(south, west)] = [fields[3], fields[2]].map { String(Substring($0)) }
                .filter { !$0.isEmpty }
        }
        self.names = names
    }

    private static func number(_ south: Int, _ west: Int) -> Int { (south + 90) * 360 + west + 180 }

    /// Returns the names for a location, from the narrowest to the widest; none at sea.
    ///
    /// - Parameters:
    ///   - latitude: degrees north, -90...90
    ///   - longitude: degrees east, -180...180
    public func names(latitude: Double, longitude: Double) -> [String] {
        guard (-90...90).contains(latitude), (-180...180).contains(longitude) else { return [] }
        let (south, west) = (min(89, Int(latitude.rounded(.down))), Int(longitude.rounded(.down)))
        return names[Self.number(south, west == 180 ? -180 : west)] ?? []
    }
}
