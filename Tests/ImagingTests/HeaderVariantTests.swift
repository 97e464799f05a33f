import ImageFormats
import Testing

/// Tests of headers in forms that few programs write.
@Suite(.timeLimit(.minutes(1)))
struct HeaderVariantTests {
    private func big(_ value: Int, _ bytes: Int = 4) -> [UInt8] {
        (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * (bytes - 1 - $0))) }
    }

    private func box(_ name: String, _ content: [UInt8]) -> [UInt8] {
        big(content.count + 8) + Array(name.utf8) + content
    }

    /// Returns an AVIF without pixels whose primary image has properties in an order.
    ///
    /// - Parameters:
    ///   - locations: the content of its `iloc`
    ///   - more: other boxes of its `meta`
    private func avif(_ properties: [[UInt8]], locations: [UInt8]? = nil, more: [UInt8] = []) -> [UInt8] {
        let association = big(0) + big(1) + big(1, 2) + [UInt8(properties.count)]
        let described = association + properties.indices.map { UInt8($0 + 1) }
        let meta =
            box("pitm", big(0) + big(1, 2))
            + box("iprp", box("ipco", properties.flatMap { $0 }) + box("ipma", described))
            + (locations.map { box("iloc", $0) } ?? []) + more
        return box("ftyp", Array("avif\0\0\0\0mif1".utf8)) + box("meta", big(0) + meta)
    }

    @Test func `the size of an AVIF is rotated and cropped, also if it comes after the rotation and the crop`() throws {
        let size = box("ispe", big(0) + big(1024) + big(722))
        let turn = box("irot", [1])
        let cut = box("clap", [385, 1, 330, 1, 0, 1, 0, 1].flatMap { big($0) })
        for properties in [[size, turn], [turn, size]] {
            let header = try ImageHeader.read(avif(properties))
            #expect((header.storedWidth, header.storedHeight) == (722, 1024))
        }
        for properties in [[size, cut], [cut, size]] {
            let header = try ImageHeader.read(avif(properties))
            #expect((header.storedWidth, header.storedHeight) == (385, 330))
        }
    }

    @Test func `items with many extents that take no bytes are read at once`() throws {
        // Offsets, lengths and bases of no bytes; each item has a name, no data reference and 65,535 extents.
        let items = (0..<65_535).flatMap { big($0, 2) + big(0, 2) + big(65_535, 2) }
        let locations = big(0) + big(0, 2) + big(65_535, 2) + items
        let file = avif([box("ispe", big(0) + big(1024) + big(722))], locations: locations)
        let start = ContinuousClock.now
        #expect(try ImageHeader.read(file).storedWidth == 1024)
        #expect(ContinuousClock.now - start < .seconds(10))
    }

    @Test func `an image whose tiles have their own opacity is refused, however its boxes are arranged`() {
        func items(_ types: [String]) -> [UInt8] {
            let entries = types.enumerated().flatMap { index, type in
                box("infe", big(0x0200_0000) + big(index + 1, 2) + big(0, 2) + Array(type.utf8))
            }
            return box("iinf", big(0) + big(types.count, 2) + entries)
        }
        func reference(_ name: String, _ item: Int, _ other: Int) -> [UInt8] {
            box(name, big(item, 2) + big(1, 2) + big(other, 2))
        }
        func isRefused(_ file: [UInt8]) -> Bool? {
            do throws(ImageHeader.Failure) {
                _ = try ImageHeader.read(file)
                return false
            } catch {
                if case .unsupported = error { return true }
                return nil
            }
        }
        let size = box("ispe", big(0) + big(1024) + big(722))
        let grid = items(["grid", "av01", "av01"])
        let tile = reference("dimg", 1, 2)
        let opacity = reference("auxl", 3, 2)
        let unnamed = big(8) + [0xFF, 0xFE, 0xFD, 0xFC]
        for depth in [8, 10] {
            let properties = [size, box("pixi", big(0) + [1, UInt8(depth)])]
            func file(_ items: [UInt8], _ references: [UInt8], before: [UInt8] = []) -> [UInt8] {
                avif(properties, more: items + before + box("iref", big(0) + references))
            }
            #expect(isRefused(file(grid, tile + opacity)) == true)
            #expect(isRefused(file(grid, tile + reference("auxl", 3, 1))) == false, "of the whole image")
            let identity = items(["iden", "av01", "av01"])
            #expect(isRefused(file(identity, tile + opacity)) == false, "the part is a whole image")
            let transform = items(["av01", "sato", "av01", "av01"])
            let inputs = reference("dimg", 2, 1) + reference("dimg", 2, 3) + reference("auxl", 4, 1)
            #expect(isRefused(file(transform, inputs)) == false, "made of whole images")
            let between = reference("dimg", 1, 2) + reference("dimg", 2, 3) + reference("auxl", 4, 3)
            #expect(isRefused(file(items(["grid", "iden", "av01", "av01"]), between)) == true)
            // A name that is not UTF-8, and a size that covers all that follows.
            #expect(isRefused(file(grid, tile + opacity, before: unnamed)) == true)
            let empty = big(9, 2) + big(0, 2)
            let odd = big(12) + Array(unnamed.suffix(4)) + empty
            #expect(isRefused(file(grid, odd + tile + opacity)) == true)
            let large = big(1000) + Array("zzzz".utf8) + empty
            #expect(isRefused(file(grid, large + tile + opacity)) == true)
        }
        // Of several descriptions the last one is used.
        #expect(isRefused(avif([size])) == false)
        #expect(isRefused(avif([size]) + box("meta", big(0))) == nil)
        #expect(isRefused(avif([size]) + unnamed + box("meta", big(0))) == nil)
    }

    /// Returns a BigTIFF without pixels, of 7 by 5 pixels, with more fields of one directory.
    private func bigTIFF(_ fields: [(tag: Int, type: Int, count: Int, value: Int)]) -> [UInt8] {
        func little(_ value: Int, _ bytes: Int) -> [UInt8] { big(value, bytes).reversed() }
        let size = [(tag: 0x0100, type: 3, count: 1, value: 7), (tag: 0x0101, type: 3, count: 1, value: 5)]
        let head = Array("II".utf8) + little(43, 2) + little(8, 2) + little(0, 2) + little(16, 8)
        let entries = (size + fields).flatMap { field in
            little(field.tag, 2) + little(field.type, 2) + little(field.count, 8) + little(field.value, 8)
        }
        return head + little(size.count + fields.count, 8) + entries + little(0, 8)
    }

    @Test func `offsets and lengths of a BigTIFF near the largest number are beyond the end of the file`() throws {
        let strip = (tag: 0x0111, type: 16, count: 1, value: 8)
        let compression = (tag: 0x0103, type: 3, count: 1, value: 5)
        let length = (tag: 0x0117, type: 16, count: 1, value: Int.max)
        #expect(try !ImageHeader.read(bigTIFF([compression, strip, length])).isComplete)
        let directories = (tag: 0x014A, type: 16, count: 2, value: Int.max)
        #expect(try ImageHeader.read(bigTIFF([directories])).storedWidth == 7)
        let strips = (tag: 0x0111, type: 16, count: 2, value: Int.max)
        #expect(try !ImageHeader.read(bigTIFF([strips])).isComplete)
    }

    @Test func `an image sequence without a primary image is refused with this reason`() {
        let file = box("ftyp", Array("msf1\0\0\0\0hevc".utf8)) + box("moov", big(0))
        #expect(throws: ImageHeader.Failure.unsupported(found: "an image sequence without a primary image")) {
            try ImageHeader.read(file)
        }
    }

    /// Returns the header of a BMP of 4 by 4 pixels.
    private func bmp(form: Int, depth: Int, compression: Int) -> [UInt8] {
        func little(_ value: Int, _ bytes: Int = 4) -> [UInt8] { big(value, bytes).reversed() }
        let start = Array("BM".utf8) + little(14 + form) + little(0) + little(14 + form)
        let fields = little(form) + little(4) + little(4) + little(1, 2) + little(depth, 2) + little(compression)
        return start + fields + [UInt8](repeating: 0, count: form - fields.count)
    }

    @Test func `variants of BMP that cannot be decoded are refused as unsupported`() throws {
        for (form, depth, compression) in [(64, 8, 0), (40, 2, 0), (40, 0, 4), (40, 0, 5), (40, 32, 6)] {
            do throws(ImageHeader.Failure) {
                _ = try ImageHeader.read(bmp(form: form, depth: depth, compression: compression))
                Issue.record("\(form), \(depth), \(compression)")
            } catch {
                guard case .unsupported = error else {
                    Issue.record("\(form), \(depth), \(compression): \(error)")
                    continue
                }
            }
        }
        for (form, depth) in [(40, 8), (64, 24), (124, 32)] {
            #expect(try ImageHeader.read(bmp(form: form, depth: depth, compression: 0)).storedWidth == 4)
        }
    }
}
