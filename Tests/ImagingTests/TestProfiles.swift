/// ICC profiles of other colour spaces than RGB.
enum TestProfiles {
    /// Values of grey with the exponent 1.8.
    static let grey: [UInt8] = profile(
        "GRAY",
        "XYZ ",
        [("wtpt", white), ("kTRC", text("curv") + big(0) + big(1) + [1, 0xCD, 0, 0])]
    )

    /// Red, green and blue of Adobe RGB with the exponent 1.8.
    static let colour: [UInt8] = {
        let curve = text("curv") + big(0) + big(1) + [1, 0xCD, 0, 0]
        func colorant(_ x: Int, _ y: Int, _ z: Int) -> [UInt8] { text("XYZ ") + big(0) + big(x) + big(y) + big(z) }
        let tags = [
            ("wtpt", white), ("rXYZ", colorant(39_957, 20_389, 1278)), ("gXYZ", colorant(13_455, 41_007, 3991)),
            ("bXYZ", colorant(9778, 4142, 48_798)), ("rTRC", curve), ("gTRC", curve), ("bTRC", curve),
        ]
        return profile("RGB ", "XYZ ", tags, of: "mntr")
    }()

    /// Inks, by a table with two points for each.
    static let inks: [UInt8] = {
        let matrix = [1, 0, 0, 0, 1, 0, 0, 0, 1].flatMap { big($0 << 16) }
        let straight = (0...255).map { UInt8($0) }
        let colours: [UInt8] = (0..<16).flatMap { (corner: Int) -> [UInt8] in
            [UInt8(255 - 60 * corner.nonzeroBitCount), 128, 128]
        }
        let table =
            text("mft1") + big(0) + [4, 3, 2, 0] + matrix + [[UInt8]](repeating: straight, count: 4).joined()
            + colours + [[UInt8]](repeating: straight, count: 3).joined()
        return profile("CMYK", "Lab ", [("wtpt", white), ("A2B0", table)])
    }()

    private static let white = text("XYZ ") + big(0) + big(63_190) + big(65_536) + big(54_061)

    private static func profile(
        _ space: String,
        _ connection: String,
        _ tags: [(String, [UInt8])],
        of device: String = "prtr"
    ) -> [UInt8] {
        var table = big(tags.count)
        var body: [UInt8] = []
        let start = 128 + 4 + 12 * tags.count
        for (tag, content) in tags {
            table += text(tag) + big(start + body.count) + big(content.count)
            body += content + [UInt8](repeating: 0, count: -content.count & 3)
        }
        var head = big(start + body.count) + big(0) + [2, 0x40, 0, 0] + text(device) + text(space) + text(connection)
        head += [0x07, 0xE8, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0] + text("acsp") + [UInt8](repeating: 0, count: 28)
        head += big(63_190) + big(65_536) + big(54_061) + [UInt8](repeating: 0, count: 48)
        return head + table + body
    }

    private static func text(_ text: String) -> [UInt8] { Array(text.utf8) }

    private static func big(_ number: Int) -> [UInt8] {
        (0..<4).map { UInt8(truncatingIfNeeded: number >> (24 - 8 * $0)) }
    }
}
