import TestSupport
import Testing

@testable import Metadata

@Suite(.timeLimit(.minutes(1)))
struct PlaceNamesTests {
    @Test(
        .spec("S-05"),
        arguments: [
            (52.5, 13.5, ["Berlin", "Germany"]), (48.5, 11.5, ["Munich", "Germany"]),
            (-33.5, 151.5, ["Sydney", "Australia"]), (71.5, 25.5, ["Norway"]), (0.5, -30.5, []), (90, 180, []),
            (-90, -180, []), (.nan, 0, []), (200, 0, []),
        ]
    )
    func `a location has the names of the largest place and the country of its degree`(
        latitude: Double,
        longitude: Double,
        names: [String]
    ) {
        #expect(PlaceNames.table.names(latitude: latitude, longitude: longitude) == names)
    }

    @Test func `lines that are not cells are ignored`() {
        let table = PlaceNames("52\t13\tGermany\tBerlin\nbroken\n1\tx\tA\tB\n-1\t-1\tGhana\t\n")
        #expect(table.names(latitude: 52.9, longitude: 13.1) == ["Berlin", "Germany"])
        #expect(table.names(latitude: -0.5, longitude: -0.5) == ["Ghana"])
        #expect(table.names(latitude: 1.5, longitude: 0.5) == [])
    }
}
