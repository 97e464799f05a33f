import Foundation
import JSONValue
import TestSupport

/// Files that Pillow writes, or that a script writes byte by byte, with the pixels that Pillow reads or the script
/// chose.
struct PillowFile {
    let name: String
    let bytes: [UInt8]
    let width: Int
    let height: Int
    /// Red, green, blue and opacity, row by row.
    let pixels: [UInt8]
    /// The largest difference of a value; negative if colours of nearly transparent pixels are lost.
    let tolerance: Int

    /// All files, created once.
    static func all() throws -> [PillowFile] {
        // Without Pillow each of the tests is skipped.
        _ = try Needed.python("PIL.Image")
        return try created.get()
    }

    private static let created = Result { try makeAll() }

    private static func makeAll() throws -> [PillowFile] {
        let python = try Needed.python("PIL.Image")
        let folder = try TemporaryFolder("pillow")
        let run = try RunningProgram.run(python, ["-c", script, folder.path], seconds: 60)
        guard run.status == 0 else { throw FixtureError(description: "the script failed: \(run.errors)") }
        let list = try JSON(parsing: Array(run.output.utf8)).arrayValue ?? []
        return try list.map { entry in
            let name = entry["name"]?.stringValue ?? ""
            func contents(_ name: String) throws -> [UInt8] {
                Array(try Data(contentsOf: URL(filePath: folder.file(name))))
            }
            return PillowFile(
                name: name,
                bytes: try contents(name),
                width: Int(entry["width"]?.intValue ?? 0),
                height: Int(entry["height"]?.intValue ?? 0),
                pixels: try contents(name + ".rgba"),
                tolerance: Int(entry["tolerance"]?.intValue ?? 0)
            )
        }
    }

    private static let script = #"""
        import json, struct, sys
        from PIL import Image

        folder = sys.argv[1]
        width, height = 61, 47
        files = []

        def pixel(x, y):
            return (x * 4, y * 5, (x * y) % 256, 255 if x > 20 else x * 12)

        colours = Image.new("RGBA", (width, height))
        colours.putdata([pixel(x, y) for y in range(height) for x in range(width)])
        rgb, grey = colours.convert("RGB"), colours.convert("L")
        bits = rgb.convert("1")
        paletted = rgb.quantize(32)
        deep = Image.new("I;16", (width, height))
        deep.putdata([x * 1000 + y for y in range(height) for x in range(width)])

        # Records a file with the pixels that it has, four bytes each.
        def add(name, image, tolerance=0):
            reference = image.convert("RGBA")
            with open(folder + "/" + name + ".rgba", "wb") as out:
                out.write(reference.tobytes())
            files.append({"name": name, "width": reference.width, "height": reference.height, "tolerance": tolerance})

        # A file that Pillow writes and reads.
        def saved(name, image, tolerance=0, **options):
            image.save(folder + "/" + name, **options)
            add(name, Image.open(folder + "/" + name), tolerance)

        # A file of these bytes, which Pillow reads unless the pixels are given.
        def written(name, data, image=None, tolerance=0):
            with open(folder + "/" + name, "wb") as out:
                out.write(data)
            add(name, image or Image.open(folder + "/" + name), tolerance)

        def high(image):
            return Image.frombytes("L", image.size, bytes((v * 255 + 32767) // 65535 for v in image.getdata()))

        # Portable maps
        size = b"%d %d" % (width, height)
        saved("colour.ppm", rgb)
        saved("grey.pgm", grey)
        saved("bits.pbm", bits)
        written("deep.pgm", b"P5\n" + size + b"\n65535\n" + struct.pack(">%dH" % (width * height), *deep.getdata()), high(deep), 1)
        text = b"\n".join(b" ".join(b"%d" % v for v in p) for p in rgb.getdata())
        written("text.ppm", b"P3\n# a comment\n" + size + b" # another\n255\n" + text + b"\n", rgb)
        written("text.pgm", b"P2 " + size + b" 255 " + b" ".join(b"%d" % v for v in grey.getdata()), grey)
        digits = b"".join(b"0" if v else b"1" for v in bits.getdata())
        written("text.pbm", b"P1 " + size + b"\n" + digits, bits)
        seven = Image.frombytes("L", grey.size, bytes(((v // 8) * 510 + 31) // 62 for v in grey.getdata()))
        written("five-bits.pgm", b"P5 " + size + b" 31\n" + bytes(v // 8 for v in grey.getdata()), seven)
        fields = b"P7\nWIDTH %d\nHEIGHT %d\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n" % (width, height)
        written("colour.pam", fields + colours.tobytes(), colours)

        # TGA
        for compression in [None, "tga_rle"]:
            for orientation in [1, -1]:
                end = "%s%d.tga" % (compression or "plain", orientation)
                for mode, image in [("rgb", rgb), ("rgba", colours), ("grey", grey), ("palette", paletted)]:
                    saved(mode + end, image, compression=compression, orientation=orientation)
        words = [(r >> 3) << 10 | (g >> 3) << 5 | b >> 3 for r, g, b in rgb.getdata()]
        head = struct.pack("<BBBHHBHHHHBB", 0, 0, 2, 0, 0, 0, 0, 0, width, height, 16, 0x20)
        written("words.tga", head + struct.pack("<%dH" % len(words), *words),
                rgb.point(lambda v: (v >> 3) * 255 // 31))

        # Icons
        # Pillow aligns the mask of a bitmap as it should only where the width is a multiple of 32.
        square = colours.crop((0, 0, 32, 32))
        saved("png.ico", square, sizes=[(16, 16), (24, 24), (32, 32)])
        saved("rgba.ico", square, sizes=[(16, 16), (32, 32)], bitmap_format="bmp")
        saved("palette.ico", square.convert("RGB").quantize(32), sizes=[(32, 32)], bitmap_format="bmp")
        saved("bits.ico", square.convert("1"), sizes=[(32, 32)], bitmap_format="bmp")

        # Photoshop
        def packed(row):
            out, at = b"", 0
            while at < len(row):
                run = 1
                while at + run < len(row) and run < 128 and row[at + run] == row[at]:
                    run += 1
                if run > 2:
                    out += bytes([257 - run, row[at]])
                else:
                    run = min(3, len(row) - at)
                    out += bytes([run - 1]) + row[at:at + run]
                at += run
            return out

        def photoshop(mode, depth, planes, large=False, compressed=False, colour_data=b"", layers=b"", resources=b""):
            head = b"8BPS" + struct.pack(">H6xHIIHH", 2 if large else 1, len(planes), height, width, depth, mode)
            body = struct.pack(">I", len(colour_data)) + colour_data + struct.pack(">I", len(resources)) + resources
            body += struct.pack(">Q" if large else ">I", len(layers)) + layers
            if not compressed:
                return head + body + struct.pack(">H", 0) + b"".join(planes)
            count = (width * depth + 7) // 8
            rows = [packed(plane[at:at + count]) for plane in planes for at in range(0, len(plane), count)]
            lengths = b"".join(struct.pack(">I" if large else ">H", len(row)) for row in rows)
            return head + body + struct.pack(">H", 1) + lengths + b"".join(rows)

        planes = [band.tobytes() for band in rgb.split()]
        for compressed in [False, True]:
            end = "-packed" if compressed else ""
            written("rgb%s.psd" % end, photoshop(3, 8, planes, compressed=compressed))
            written("grey%s.psd" % end, photoshop(1, 8, [grey.tobytes()], compressed=compressed))
            written("duotone%s.psd" % end, photoshop(8, 8, [grey.tobytes()], compressed=compressed), grey)
            written("rgb%s.psb" % end, photoshop(3, 8, planes, large=True, compressed=compressed), rgb)
            table = bytes(paletted.getpalette()[channel + 3 * index] if index < 32 else 0
                          for channel in range(3) for index in range(256))
            written("indexed%s.psd" % end, photoshop(2, 8, [paletted.tobytes()], colour_data=table, compressed=compressed))
            written("bits%s.psd" % end, photoshop(0, 1, [bytes(~b & 255 for b in bits.tobytes())], compressed=compressed), bits)
        deep_bytes = struct.pack(">%dH" % (width * height), *deep.getdata())
        written("deep.psd", photoshop(1, 16, [deep_bytes], compressed=True), high(deep), 1)
        cmyk = rgb.convert("CMYK")
        inks = [bytes(255 - v for v in band.tobytes()) for band in cmyk.split()]
        written("cmyk.psd", photoshop(4, 8, inks), cmyk.convert("RGB"), 1)
        mask = photoshop(3, 8, planes + [b"\0" * (width * height)])
        written("mask.psd", mask, rgb)
        # A negative number of layers: the fourth channel is the opacity of the image, which lies on white.
        opacity = colours.getchannel("A")
        white = Image.new("RGB", colours.size, "white")
        flat = [band.tobytes() for band in Image.composite(rgb, white, opacity).split()] + [opacity.tobytes()]
        alpha = photoshop(3, 8, flat, layers=struct.pack(">Ih", 4, -1) + b"\0\0\0\0")
        # Where there is hardly any opacity, the colour is lost in eight bits.
        written("alpha.psd", alpha, colours, -1)
        # With 16 bits the layers are in a block behind their usual place.
        twice = [bytes(v for sample in plane for v in (sample, sample)) for plane in flat]
        for large in [False, True]:
            size, end = ("Q", "b") if large else ("I", "d")
            block = b"8BIMLr16" + struct.pack(">" + size + "hH", 4, -1, 0)
            empty = struct.pack(">" + size + "I", 0, 0)
            deep_alpha = photoshop(3, 16, twice, large=large, layers=empty + block)
            written("deep-alpha.ps" + end, deep_alpha, colours, -1)
        exif = b"II*\0\x08\0\0\0\x01\0\x0f\x01\x02\0\x05\0\0\0\x1a\0\0\0\0\0\0\0Psdm\0\0"
        resource = b"8BIM" + struct.pack(">HHI", 1058, 0, len(exif)) + exif
        written("exif.psd", photoshop(1, 8, [grey.tobytes()], resources=resource), grey)
        print(json.dumps(files))
        """#
}
