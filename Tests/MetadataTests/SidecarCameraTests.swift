import JSONValue
import Metadata
import TestSupport
import Testing

/// Tests of the camera and the lens of a sidecar.
@Suite(.timeLimit(.minutes(1)))
struct SidecarCameraTests {
    private func packet(_ lens: String) -> [UInt8] {
        let text = TestImages.xmpPacket("tiff:Make=\"Leica\" tiff:Model=\"M6\" \(lens)")
        let spaces = """
            xmlns:aux="http://ns.adobe.com/exif/1.0/aux/" xmlns:exifEX="http://cipa.jp/exif/1.0/" xmlns:GPano
            """
        return Array(text.replacing("xmlns:GPano", with: spaces).utf8)
    }

    @Test(arguments: ["exifEX:LensModel", "aux:Lens"])
    func `camera and lens are read from a sidecar`(_ name: String) throws {
        let facts = try SidecarMetadata(xmp: packet("\(name)=\"Summicron 35mm\""))
        #expect(facts.json["cameraMake"] == "Leica")
        #expect(facts.json["cameraModel"] == "M6")
        #expect(facts.json["lensModel"] == "Summicron 35mm")
        #expect(try SidecarMetadata(json: facts.json) == facts)
    }
}
