import PhotoModel
import TestSupport
import Testing

@Suite(.timeLimit(.minutes(TestEnvironment.rounds(1))))
struct GeographyTests {
    @Test func `distances agree with known values`() throws {
        let paris = try #require(GeoCircle(latitude: 48.8566, longitude: 2.3522, radius: 344_000))
        #expect(abs(paris.distance(latitude: 51.5074, longitude: -0.1278) - 343_556) < 100)
        #expect(paris.contains(latitude: 51.5074, longitude: -0.1278))
        #expect(paris.distance(latitude: 48.8566, longitude: 2.3522) == 0)
        let antimeridian = try #require(GeoCircle(latitude: 0, longitude: 179.5, radius: 120_000))
        #expect(antimeridian.contains(latitude: 0, longitude: -179.5))
        #expect(!antimeridian.contains(latitude: 0, longitude: -179.3))
    }

    @Test func `numbers out of range are refused`() {
        #expect(GeoCircle(latitude: 91, longitude: 0, radius: 1) == nil)
        #expect(GeoCircle(latitude: 0, longitude: -181, radius: 1) == nil)
        #expect(GeoCircle(latitude: 0, longitude: 0, radius: -1) == nil)
        #expect(GeoCircle(latitude: .nan, longitude: 0, radius: 1) == nil)
        #expect(GeoCircle(latitude: 0, longitude: 0, radius: .infinity) == nil)
        #expect(GeoBox(south: 1, west: 0, north: 0, east: 1) == nil)
        #expect(GeoBox(south: 0, west: 0, north: .nan, east: 1) == nil)
    }

    @Test func `a box may cross the antimeridian`() throws {
        let box = try #require(GeoBox(south: -10, west: 170, north: 10, east: -170))
        #expect(box.crossesAntimeridian)
        #expect(box.contains(latitude: 0, longitude: 180))
        #expect(box.contains(latitude: 0, longitude: -175))
        #expect(!box.contains(latitude: 0, longitude: 0))
        #expect(!box.contains(latitude: 11, longitude: 175))
    }

    @Test func `the bounding box of a circle contains the circle`() throws {
        var random = SeededRandom(named: "circles")
        for _ in 0..<TestEnvironment.rounds(20_000) {
            let circle = try #require(
                GeoCircle(
                    latitude: random.one(in: 9) ? random.pick([-90, 90]) : .random(in: -90...90, using: &random),
                    longitude: random.one(in: 9) ? random.pick([-180, 180]) : .random(in: -180...180, using: &random),
                    radius: random.pick([1, 1000, 1_000_000, 20_000_000]) * .random(in: 0...1, using: &random)
                )
            )
            // Most random points are far away: some are chosen near the edge.
            let reach = circle.radius / 111_195
            let latitude = min(90, max(-90, circle.latitude + .random(in: -reach...reach, using: &random)))
            let longitude = min(180, max(-180, circle.longitude + .random(in: -2 * reach...2 * reach, using: &random)))
            if circle.contains(latitude: latitude, longitude: longitude) {
                #expect(
                    circle.boundingBox.contains(latitude: latitude, longitude: longitude),
                    "\(circle) \(latitude) \(longitude)"
                )
            }
        }
    }
}
