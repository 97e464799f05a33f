import Contracts
import PhotoModel
import Testing

@testable import CommandLine

/// The sidecars that `export` writes.
@Suite(.timeLimit(.minutes(1)))
struct XMPSidecarTests {
    private func packet(_ location: Location) -> String {
        var asset = Asset(id: .none)
        asset.location = location
        let history = EditHistory.Result(asset: .none, contentRevision: Revision(0), steps: [], isComplete: true)
        return XMPSidecar.packet(asset, adjustmentData: [], history: history)
    }

    @Test func `the altitude is written in metres with its side of the sea`() {
        let above = packet(Location(latitude: 52.5, longitude: 13.4, altitude: 34.5))
        #expect(above.contains("exif:GPSAltitude=\"69/2\"") && above.contains("exif:GPSAltitudeRef=\"0\""), "\(above)")
        let below = packet(Location(latitude: 31.5, longitude: 35.5, altitude: -430))
        #expect(below.contains("exif:GPSAltitude=\"430/1\"") && below.contains("exif:GPSAltitudeRef=\"1\""), "\(below)")
        #expect(!packet(Location(latitude: 31.5, longitude: 35.5)).contains("GPSAltitude"))
    }
}
