import Foundation

/// JPEG XL files made by the reference tools.
public enum TestJXL {
    /// True if `cjxl` is installed.
    public static var isInstalled: Bool { ExternalTool.path("cjxl") != nil }

    /// Returns the file that `cjxl` makes of a JPEG or PNG; nil if it is not installed.
    ///
    /// - Parameter arguments: for example `-d 0`; `--container=1` puts boxes around the codestream
    public static func encoded(_ bytes: [UInt8], fileExtension: String, _ arguments: [String] = []) throws -> [UInt8]? {
        try converted(bytes, from: fileExtension, to: "jxl", by: "cjxl", arguments)
    }

    /// Returns an image with uncompressed metadata boxes, which `cjxl` would always compress.
    public static func boxed(
        _ image: [UInt8],
        fileExtension: String,
        exif: [UInt8],
        xmp: [UInt8]? = nil
    ) throws -> [UInt8]? {
        let options = ["--lossless_jpeg=0", "--container=1"]
        guard let whole = try encoded(image, fileExtension: fileExtension, options) else { return nil }
        guard let name = Data(whole).range(of: Data("jxlc".utf8)) else { return nil }
        // A box's size precedes its name and includes both; 0 means until the end of the file.
        let size = whole[name.lowerBound - 4..<name.lowerBound].reduce(0) { $0 << 8 | Int($1) }
        let codestream = Array(
            size == 0 ? whole[name.upperBound...] : whole[name.upperBound..<name.lowerBound + size - 4]
        )
        let start = box("JXL ", [0x0D, 0x0A, 0x87, 0x0A]) + box("ftyp", Array("jxl \0\0\0\0jxl ".utf8))
        let metadata = box("Exif", [0, 0, 0, 0] + exif) + (xmp.map { box("xml ", $0) } ?? [])
        return start + metadata + box("jxlc", codestream)
    }

    private static func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        let size = content.count + 8
        return (0..<4).map { UInt8(truncatingIfNeeded: size >> (24 - 8 * $0)) } + Array(name.utf8) + content
    }

    /// Returns the PNG that `djxl` makes of a JPEG XL file.
    public static func decoded(_ bytes: [UInt8]) throws -> [UInt8]? {
        try converted(bytes, from: "jxl", to: "png", by: "djxl", [])
    }

    private static func converted(
        _ bytes: [UInt8],
        from: String,
        to: String,
        by tool: String,
        _ arguments: [String]
    ) throws -> [UInt8]? {
        let path = try Needed.program(tool)
        let folder = try TemporaryFolder("jxl")
        let (source, target) = (try folder.write(bytes, to: "a.\(from)"), folder.file("b.\(to)"))
        _ = try ExternalTool.run(path, [source, target] + arguments)
        return try [UInt8](Data(contentsOf: URL(filePath: target)))
    }
}
