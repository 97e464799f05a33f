import Contracts
import JSONValue
import PhotoClient
import PhotoModel

/// Writes an asset's metadata and edit history as an XMP sidecar, so that other programs can read them (P-28).
enum XMPSidecar {
    /// The namespace of the properties that are not part of XMP.
    static let namespace = "urn:org.safelight:edits#"

    /// Returns the sidecar of an asset; requests its adjustment data and history from the services.
    ///
    /// - Parameter isRender: true if the file beside it is the edited version
    static func text(of asset: Asset, isRender: Bool, in library: PhotoLibrary) async throws(RPCError) -> String {
        var data: [UInt8] = []
        if asset.resource(.adjustmentData) != nil {
            for try await chunk in library.resource(asset: asset.id, type: .adjustmentData) { data += chunk }
        }
        let history = try await library.editor.ask(EditHistory(asset: asset.id)).result
        return packet(asset, isRender: isRender, adjustmentData: data, history: history)
    }

    static func packet(
        _ asset: Asset,
        isRender: Bool = false,
        adjustmentData: [UInt8],
        history: EditHistory.Result
    ) -> String {
        var attributes: [(String, String)] = [("xmp:Rating", String(asset.rating))]
        if let date = asset.creationDate {
            let offset = asset.creationOffset ?? 0
            let local = Timestamp.text(date + Int64(offset) * 1_000_000).dropLast()
            let text = asset.creationOffset == nil ? String(local) : local + QuantityFormatter.offset(offset)
            attributes += [("exif:DateTimeOriginal", text), ("photoshop:DateCreated", text)]
        }
        if let location = asset.location {
            attributes.append(("exif:GPSLatitude", degrees(location.latitude, "N", "S")))
            attributes.append(("exif:GPSLongitude", degrees(location.longitude, "E", "W")))
            if let altitude = location.altitude {
                attributes.append(("exif:GPSAltitude", Rational(abs(altitude)).description))
                attributes.append(("exif:GPSAltitudeRef", altitude < 0 ? "1" : "0"))
            }
        }
        if let make = asset.cameraMake { attributes.append(("tiff:Make", make)) }
        if let model = asset.cameraModel { attributes.append(("tiff:Model", model)) }
        if let lens = asset.lensModel { attributes.append(("aux:Lens", lens)) }
        attributes += asset.metadata.map(attributes(of:)) ?? []
        attributes.append(("safelight:asset", asset.id.text))
        attributes.append(("safelight:original", asset.originalResource?.digest ?? ""))
        if let identifier = asset.adjustmentFormatIdentifier {
            attributes.append(("safelight:formatIdentifier", identifier))
            attributes.append(("safelight:formatVersion", asset.adjustmentFormatVersion ?? ""))
            attributes.append(("safelight:adjustmentData", base64(adjustmentData)))
        }
        attributes.append(("safelight:history", JSON.array(history.steps.map(\.json)).text))
        let written = attributes.map { property($0.0, $0.1) }.joined()
        let words = asset.keywords.map { "<rdf:li>\(escaped($0))</rdf:li>" }.joined()
        let caption = asset.caption.map { alternatives("dc:description", $0) }
        let elements = elements(of: asset, isRender: isRender).map { "\n       \($0)" }.joined()
        let head = """
            <?xpacket begin="\u{FEFF}" id="W5M0MpCehiHzreSzNTczkc9d"?>
            <x:xmpmeta xmlns:x="adobe:ns:meta/">
             <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
              <rdf:Description rdf:about="" xmlns:xmp="http://ns.adobe.com/xap/1.0/"
                xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:exif="http://ns.adobe.com/exif/1.0/"
                xmlns:tiff="http://ns.adobe.com/tiff/1.0/" xmlns:photoshop="http://ns.adobe.com/photoshop/1.0/"
                xmlns:aux="http://ns.adobe.com/exif/1.0/aux/" xmlns:exifEX="http://cipa.jp/exif/1.0/"
                xmlns:lr="http://ns.adobe.com/lightroom/1.0/"
                xmlns:Iptc4xmpExt="http://iptc.org/std/Iptc4xmpExt/2008-02-29/"
                xmlns:mwg-rs="http://www.metadataworkinggroup.com/schemas/regions/"
                xmlns:stDim="http://ns.adobe.com/xap/1.0/sType/Dimensions#"
                xmlns:stArea="http://ns.adobe.com/xmp/sType/Area#"
                xmlns:safelight="\(namespace)"\(written)
            """
        let rest = """
            >
               <dc:subject><rdf:Bag>\(words)</rdf:Bag></dc:subject>\(caption ?? "")\(elements)
              </rdf:Description>
             </rdf:RDF>
            </x:xmpmeta>
            <?xpacket end="w"?>

            """
        return head + digestProperty(of: head + rest) + rest
    }

    /// Returns a coordinate in XMP's format: "52,30.5N".
    private static func degrees(_ value: Double, _ positive: String, _ negative: String) -> String {
        let magnitude = abs(value)
        let whole = Int(magnitude)
        // In millionths, because the text of a small floating-point number has an exponent.
        let millionths = Int(((magnitude - Double(whole)) * 60 * 1_000_000).rounded())
        var fraction = String(1_000_000 + millionths % 1_000_000).dropFirst()
        while fraction.count > 1, fraction.hasSuffix("0") { fraction.removeLast() }
        return "\(whole),\(millionths / 1_000_000).\(fraction)\(value < 0 ? negative : positive)"
    }

    static func escaped(_ text: String) -> String {
        var result = ""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "\n": result += "&#10;"
            case "\t": result += "&#9;"
            // XML 1.0 allows no other control characters, not even as character references.
            case _ where scalar.value < 0x20: continue
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    private static func base64(_ bytes: [UInt8]) -> String {
        let digits = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
        var text = ""
        for start in stride(from: 0, to: bytes.count, by: 3) {
            let part = bytes[start..<min(start + 3, bytes.count)]
            var number = part.reduce(UInt32(0)) { $0 << 8 | UInt32($1) }
            number <<= 8 * UInt32(3 - part.count)
            for index in 0..<4 {
                text.append(index <= part.count ? digits[Int(number >> UInt32(18 - 6 * index)) & 63] : "=")
            }
        }
        return text
    }
}
