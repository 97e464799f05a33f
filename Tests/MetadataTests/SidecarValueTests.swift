import Metadata
import PhotoModel
import TestSupport
import Testing

/// Tests of values in sidecars of other programs and of Safelight.
@Suite(.timeLimit(.minutes(1)))
struct SidecarValueTests {
    private func facts(_ attributes: String, beside image: SidecarMetadata.Image? = nil) throws -> SidecarMetadata {
        try SidecarMetadata(xmp: Array(TestImages.xmpPacket(attributes).utf8), beside: image)
    }

    /// Returns a packet with elements.
    private func packet(_ elements: String, _ attributes: String = "") -> [UInt8] {
        Array(
            """
            <x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
            <rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/"
            xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/"
            xmlns:stDim="http://ns.adobe.com/xap/1.0/sType/Dimensions#" xmlns:tiff="http://ns.adobe.com/tiff/1.0/"
            xmlns:stArea="http://ns.adobe.com/xmp/sType/Area#" xmlns:safelight="urn:org.safelight:edits#" \(attributes)>
            \(elements)</rdf:Description></rdf:RDF></x:xmpmeta>
            """.utf8
        )
    }

    @Test func `a location has hemispheres in its texts, in fields of their own, or signs`() throws {
        func coordinates(_ latitude: String, _ longitude: String, _ refs: (String, String)? = nil) throws
            -> PhotoMetadata.Coordinates?
        {
            let names = refs.map { "exif:GPSLatitudeRef=\"\($0.0)\" exif:GPSLongitudeRef=\"\($0.1)\"" } ?? ""
            return try facts("exif:GPSLatitude=\"\(latitude)\" exif:GPSLongitude=\"\(longitude)\" \(names)").location
        }
        let expected = PhotoMetadata.Coordinates(latitude: -33.5, longitude: 151.25)
        #expect(try coordinates("33,30.0S", "151,15.0E") == expected)
        #expect(try coordinates("33,30,0S", "151,15,0E", ("N", "W")) == expected, "the letter in the text is used")
        #expect(try coordinates("33.5", "151.25", ("S", "E")) == expected)
        #expect(try coordinates("-33.5", "151.25", ("S", "E")) == expected)
        #expect(try coordinates("-33.5", "+151.25") == expected)
        // The minutes are rounded to 60.
        #expect(try coordinates("52,60.0N", "13,24.0E") == .init(latitude: 53, longitude: 13.4))
        // Swift prints very small minutes with an exponent.
        let small = try coordinates("52,6e-05N", "13,24.0E")
        #expect(abs((small?.latitude ?? 0) - 52.000_001) < 1e-9)
        for text in ["33.5", "33/1", "south", "33,75.0S", ""] {
            #expect(try coordinates(text, "151,15.0E") == nil, "\(text)")
        }
    }

    @Test func `an empty list of keywords is read as empty, and an empty text as missing`() throws {
        let empty = try SidecarMetadata(xmp: packet("<dc:subject><rdf:Bag></rdf:Bag></dc:subject>"))
        #expect(empty.keywords == [])
        #expect(try SidecarMetadata(json: empty.json) == empty)
        let text = "<dc:description><rdf:Alt><rdf:li xml:lang=\"x-default\"></rdf:li></rdf:Alt></dc:description>"
        let none = try SidecarMetadata(xmp: packet(text))
        #expect(none.caption == nil && none.keywords == nil)
    }

    @Test func `a sidecar of Safelight names the file that it was exported with`() throws {
        let digest = String(repeating: "ab", count: 32)
        let facts = try SidecarMetadata(
            xmp: packet("", "safelight:original=\"\(digest)\" safelight:digest=\"\(digest)\"")
        )
        #expect(facts.original == digest)
        #expect(try SidecarMetadata(json: facts.json) == facts)
        #expect(try SidecarMetadata(xmp: packet("", "safelight:original=\"\(digest)\"")).original == nil)
    }

    // MARK: Faces

    private func face(_ width: Int, _ height: Int) -> String {
        """
        <mwg-rs:Regions rdf:parseType="Resource"><mwg-rs:AppliedToDimensions stDim:w="\(width)" stDim:h="\(height)" \
        stDim:unit="pixel"/><mwg-rs:RegionList><rdf:Bag><rdf:li rdf:parseType="Resource"><mwg-rs:Name>Ada</mwg-rs:Name>\
        <mwg-rs:Type>Face</mwg-rs:Type><mwg-rs:Area stArea:x="0.1" stArea:y="0.2" stArea:w="0.1" stArea:h="0.1" \
        stArea:unit="normalized"/></rdf:li></rdf:Bag></mwg-rs:RegionList></mwg-rs:Regions>
        """
    }

    @Test func `areas of faces refer to the stored pixels, even if only the image has an orientation`()
        throws
    {
        func area(_ elements: String, _ attributes: String = "", orientation: Int?) throws -> UnitRect? {
            let image = orientation.map { orientation in
                SidecarMetadata.Image(pixelWidth: 48, pixelHeight: 64, orientation: orientation)
            }
            return try SidecarMetadata(xmp: packet(elements, attributes), beside: image).metadata?.persons.first?.area
        }
        let stored = UnitRect(x: 0.05, y: 0.15, width: 0.1, height: 0.1)
        let displayed = UnitRect(x: 0.75, y: 0.05, width: 0.1, height: 0.1)
        #expect(try area(face(64, 48), orientation: 6) == displayed)
        #expect(try area(face(64, 48), "tiff:Orientation=\"6\"", orientation: nil) == displayed)
        #expect(try area(face(64, 48), "tiff:Orientation=\"1\"", orientation: 6) == stored)
        #expect(try area(face(48, 64), orientation: 6) == stored, "the sides are those of the displayed image")
        #expect(try area(face(64, 48), orientation: nil) == stored)
        let own = "safelight:original=\"\(String(repeating: "ab", count: 32))\""
        #expect(
            try area(face(48, 64), own, orientation: 3) == stored,
            "areas of Safelight refer to the displayed image"
        )
        #expect(try area(face(64, 48), own + " tiff:Orientation=\"6\"", orientation: 6) == displayed)
    }
}
