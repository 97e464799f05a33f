import Foundation
import ImageFormats
@testable import Imaging
import TestSupport
import Testing

/// Tests of TIFF files that are damaged, incomplete, or have values that TIFF does not define.
@Suite(.timeLimit(.minutes(2)))
struct DamagedTIFFTests {
    private func tiff(_ compression: String) throws -> [UInt8] {
        [UInt8](
            try ExternalTool.run(
                try Needed.program("convert"),
                ["-size", "320x200", "gradient:red-blue", "-units", "PixelsPerInch", "-density", "72"]
                    + ["-compress", compression, "tiff:-"]
            )
        )
    }

    @Test(arguments: ["jpeg", "lzw", "zip"])
    func `a strip that cannot be decoded is an error, not an image of uninitialized memory`(_ compression: String)
        throws
    {
        var bytes = try tiff(compression)
        _ = try RenditionRenderer.render(bytes, RenditionOptions(format: .png))
        // The strips precede the directory.
        for index in 8..<bytes.count / 2 { bytes[index] = 0 }
        #expect(throws: ImagingError.self) { try RenditionRenderer.render(bytes, RenditionOptions(format: .png)) }
    }

    @Test func `a file without its end is not complete`() throws {
        for compression in ["none", "lzw"] {
            let bytes = try tiff(compression)
            #expect(try ImageHeader.read(bytes).isComplete)
            // With the directory at the front, the end has strips.
            let front = try withDirectoryFirst(bytes)
            #expect(try ImageHeader.read(front).isComplete)
            let counts = [front.count / 3, 300, 100] + (compression == "none" ? [front.count - 1] : [])
            for count in counts {
                let isComplete = (try? ImageHeader.read(Array(front.prefix(count))))?.isComplete ?? false
                #expect(!isComplete, "\(compression): \(count) of \(front.count) bytes")
            }
        }
    }

    /// Returns the file with its directory in front of its strips, as some programs write it.
    private func withDirectoryFirst(_ bytes: [UInt8]) throws -> [UInt8] {
        let python = try Needed.python("PIL")
        let folder = try TemporaryFolder("tiff")
        try folder.write(bytes, to: "in.tif")
        let script = """
            import struct, sys
            data = open(sys.argv[1], "rb").read()
            start, = struct.unpack("<I", data[4:8])
            count, = struct.unpack("<H", data[start:start + 2])
            entries = [list(struct.unpack("<HHII", data[start + 2 + 12 * i:start + 14 + 12 * i])) for i in range(count)]
            sizes = {1: 1, 2: 1, 3: 2, 4: 4, 5: 8}
            def values(entry):
                tag, kind, number, value = entry
                size = number * sizes[kind]
                raw = struct.pack("<I", value)[:size] if size <= 4 else data[value:value + size]
                return raw
            fields = {entry[0]: (entry[1], entry[2], values(entry)) for entry in entries}
            def numbers(tag):
                kind, number, raw = fields[tag]
                return struct.unpack("<%d%s" % (number, {3: "H", 4: "I"}[kind]), raw)
            strips = [data[o:o + n] for o, n in zip(numbers(0x111), numbers(0x117))]
            head = 8 + 2 + 12 * count + 4
            extra = head
            space = sum(len(raw) + len(raw) % 2 for _, _, raw in fields.values() if len(raw) > 4) + 4 * len(strips)
            place, offsets = head + space, []
            for strip in strips:
                offsets.append(place)
                place += len(strip)
            fields[0x111] = (4, len(offsets), struct.pack("<%dI" % len(offsets), *offsets))
            out, tail = struct.pack("<2sHIH", b"II", 42, 8, count), b""
            for tag in sorted(fields):
                kind, number, raw = fields[tag]
                if len(raw) <= 4:
                    out += struct.pack("<HHI", tag, kind, number) + raw.ljust(4, b"\\0")
                else:
                    out += struct.pack("<HHII", tag, kind, number, head + len(tail))
                    tail += raw + b"\\0" * (len(raw) % 2)
            out += struct.pack("<I", 0) + tail
            out = out.ljust(head + space, b"\\0") + b"".join(strips)
            open(sys.argv[2], "wb").write(out)
            """
        _ = try ExternalTool.run(python, ["-c", script, folder.file("in.tif"), folder.file("out.tif")])
        return [UInt8](try Data(contentsOf: URL(filePath: folder.file("out.tif"))))
    }

    @Test(arguments: [UInt16(0), 4])
    func `a resolution in a unit that TIFF does not define is ignored`(_ unit: UInt16) throws {
        var bytes = try tiff("none")
        let field: [UInt8] = [0x28, 0x01, 3, 0, 1, 0, 0, 0]
        guard let end = bytes.firstRange(of: field)?.upperBound else { throw ImagingError.truncated }
        bytes.replaceSubrange(end..<end + 2, with: [UInt8(unit), 0])
        _ = try RenditionRenderer.render(bytes, RenditionOptions(format: .png))
    }

    @Test func `an error in the directories is not an error of the pixels`() {
        for function in ["TIFFFetchDirectory", "TIFFReadCustomDirectory", "TIFFFetchNormalTag", "Fax4Decode"] {
            #expect(
                !TIFFStructure.meansMissingPixels("Sanity check failed. `\(function)' @ error/tiff.c/TIFFErrors/603")
            )
        }
        for function in ["TIFFFillStrip", "JPEGLib", "DumpModeDecode", "ZIPDecode", "TIFFFillTile"] {
            #expect(TIFFStructure.meansMissingPixels("Not enough data. `\(function)' @ error/tiff.c/TIFFErrors/603"))
        }
    }
}
