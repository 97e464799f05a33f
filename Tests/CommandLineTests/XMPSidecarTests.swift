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

    private func sidecar(_ caption: String, _ sequences: [Int64]) -> [UInt8] {
        var asset = Asset(id: ScriptedService.id("a", 1))
        asset.caption = caption
        let steps = sequences.map { EditStep(step: 1, kind: .edit, sequence: $0, date: 0, identity: "uid:1") }
        let history = EditHistory.Result(
            asset: asset.id,
            contentRevision: Revision(0),
            steps: steps,
            isComplete: true
        )
        return Array(XMPSidecar.packet(asset, adjustmentData: [], history: history).utf8)
    }

    @Test func `coordinates are written without an exponent`() {
        #expect(packet(Location(latitude: 52.508333, longitude: -0.0000001)).contains("52,30.49998N"))
        let near = packet(Location(latitude: 52.000000876, longitude: -10.5))
        #expect(near.contains("\"52,0.000053N\"") && near.contains("\"10,30.0W\""), "\(near)")
    }

    @Test func `a sidecar of an earlier export is recognized, also with another history of edits`() {
        let known = sidecar("a \"<sea>\" & sand", [3, 5])
        #expect(XMPSidecar.relation(of: known, to: known) == .same)
        for sequences in [[5], [], [3]] as [[Int64]] {
            #expect(XMPSidecar.relation(of: known, to: sidecar("a \"<sea>\" & sand", sequences)) == .same)
        }
        #expect(XMPSidecar.relation(of: known, to: sidecar("a \"<sea>\" & sand", [5, 8])) == .earlier)
        #expect(XMPSidecar.relation(of: known, to: sidecar("b", [3, 5])) == .earlier)
    }

    @Test func `a sidecar that was modified or has no digest is another file`() {
        let known = sidecar("a", [])
        let new = sidecar("b", [])
        #expect(XMPSidecar.relation(of: known + Array("\n".utf8), to: new) == .other)
        #expect(XMPSidecar.relation(of: Array("mine".utf8), to: new) == .other)
        #expect(XMPSidecar.relation(of: [], to: new) == .other)
        // A version that wrote no digest.
        let text = String(decoding: known, as: UTF8.self)
        let earlier = Array(text.replacing(/\n +safelight:digest="[0-9a-f]{64}"/, with: "").utf8)
        #expect(earlier.count < known.count)
        #expect(XMPSidecar.relation(of: earlier, to: new) == .other)
        #expect(XMPSidecar.relation(of: earlier, to: known) == .same)
    }

    @Test func `the sidecar of a render names the persons, and has no areas of the original`() {
        var asset = Asset(id: .none)
        let digest = String(repeating: "0", count: 64)
        asset.resources = [AssetResource(type: .photo, digest: digest, size: 1, contentType: "public.jpeg")]
        var metadata = AssetMetadata()
        let face = UnitRect(x: 0.2, y: 0.3, width: 0.1, height: 0.1)
        metadata.persons = [Person(name: "Ada", area: face), Person(name: "Ada", area: face)]
        asset.metadata = metadata
        let history = EditHistory.Result(asset: .none, contentRevision: Revision(0), steps: [], isComplete: true)
        for isRender in [false, true] {
            let packet = XMPSidecar.packet(asset, isRender: isRender, adjustmentData: [], history: history)
            #expect(packet.contains("<rdf:Bag><rdf:li>Ada</rdf:li></rdf:Bag></Iptc4xmpExt:PersonInImage>"), "\(packet)")
            #expect(packet.contains("<mwg-rs:Regions") != isRender)
        }
    }

    @Test func `the altitude is written in metres with its side of the sea`() {
        let above = packet(Location(latitude: 52.5, longitude: 13.4, altitude: 34.5))
        #expect(above.contains("exif:GPSAltitude=\"69/2\"") && above.contains("exif:GPSAltitudeRef=\"0\""), "\(above)")
        let below = packet(Location(latitude: 31.5, longitude: 35.5, altitude: -430))
        #expect(below.contains("exif:GPSAltitude=\"430/1\"") && below.contains("exif:GPSAltitudeRef=\"1\""), "\(below)")
        #expect(!packet(Location(latitude: 31.5, longitude: 35.5)).contains("GPSAltitude"))
    }
}
