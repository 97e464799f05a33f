/// Detects camera raw files, whose format depends on the camera's maker.
public enum RawFileType {
    /// Returns the uniform type identifier of a raw file, or nil for anything else.
    ///
    /// The type is detected by the bytes. The file extension is used only to distinguish the formats that are based on
    /// TIFF.
    ///
    /// - Parameters:
    ///   - bytes: the beginning of the file; 32 bytes are enough
    ///   - fileExtension: the file extension without the dot
    public static func sniff(_ bytes: some Collection<UInt8>, fileExtension: String?) -> String? {
        let head = Array(bytes.prefix(32))
        let reader = ByteReader(head)
        if reader.has("FUJIFILMCCD-RAW", at: 0) { return "com.fuji.raw-image" }
        if reader.has("II", at: 0), reader.has("CR", at: 8) { return cr2 }
        if reader.has("ftypcrx ", at: 4) { return "com.canon.cr3-raw-image" }
        if reader.has("IIRO", at: 0) || reader.has("IIRS", at: 0) || reader.has("MMOR", at: 0) {
            return "com.olympus.raw-image"
        }
        if head.starts(with: [0x49, 0x49, 0x55, 0x00]) { return "com.panasonic.rw2-raw-image" }
        guard ImageFormat.sniff(head) == .tiff else { return nil }
        return tiffKinds[fileExtension?.lowercased() ?? ""]
    }

    static let dng = "com.adobe.raw-image"
    static let cr2 = "com.canon.cr2-raw-image"

    /// Returns the uniform type identifier of a maker's format that is based on TIFF.
    ///
    /// - Parameter maker: EXIF Make
    static func contentType(ofMaker maker: String) -> String {
        let maker = maker.uppercased()
        return makers.first { maker.hasPrefix($0.name) }?.contentType ?? ImageFormat.raw.contentType
    }

    private static let makers: [(name: String, contentType: String)] = [
        ("NIKON", "com.nikon.raw-image"), ("SONY", "com.sony.arw-raw-image"), ("PENTAX", "com.pentax.raw-image"),
        ("RICOH", "com.pentax.raw-image"), ("SAMSUNG", "com.samsung.raw-image"),
        ("HASSELBLAD", "com.hasselblad.3fr-raw-image"), ("PHASE ONE", "com.phaseone.raw-image"),
        ("LEAF", "com.leafamerica.raw-image"), ("SEIKO EPSON", "com.epson.raw-image"),
        ("KODAK", "com.kodak.raw-image"), ("EASTMAN KODAK", "com.kodak.raw-image"),
    ]

    private static let tiffKinds = [
        "dng": dng, "nef": "com.nikon.raw-image", "nrw": "com.nikon.nrw-raw-image",
        "arw": "com.sony.arw-raw-image", "sr2": "com.sony.sr2-raw-image", "srf": "com.sony.raw-image",
        "pef": "com.pentax.raw-image", "srw": "com.samsung.raw-image", "3fr": "com.hasselblad.3fr-raw-image",
        "iiq": "com.phaseone.raw-image", "erf": "com.epson.raw-image",
    ]
}
