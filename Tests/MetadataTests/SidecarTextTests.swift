import Foundation
import Metadata
import TestSupport
import Testing

/// Tests of sidecars in the encodings and forms that programs write.
@Suite(.timeLimit(.minutes(1)))
struct SidecarTextTests {
    private static let rdf = """
        <rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about=""
          xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:dc="http://purl.org/dc/elements/1.1/" xmp:Rating="4.0">
        <dc:description><rdf:Alt><rdf:li xml:lang="x-default">Wellen, Küste, 海</rdf:li></rdf:Alt></dc:description>
        </rdf:Description></rdf:RDF>
        """
    private static let meta = "<x:xmpmeta xmlns:x=\"adobe:ns:meta/\">\(rdf)</x:xmpmeta>"
    private static let packet =
        "<?xpacket begin=\"\u{FEFF}\" id=\"W5M0MpCehiHzreSzNTczkc9d\"?>\n\(meta)\n<?xpacket end=\"w\"?>"

    private func check(_ bytes: [UInt8], _ name: String) {
        #expect(throws: Never.self, "\(name)") {
            let facts = try SidecarMetadata(xmp: bytes)
            #expect((facts.rating, facts.caption) == (4, "Wellen, Küste, 海"), "\(name)")
        }
    }

    @Test func `a keyword with many accents is limited in bytes`() throws {
        let keyword = String(repeating: "a" + String(repeating: "\u{0301}", count: 200), count: 100)
        let description = "<dc:description>"
        let subject = "<dc:subject><rdf:Bag><rdf:li>\(keyword)</rdf:li></rdf:Bag></dc:subject>" + description
        let packet = Self.packet.replacing(description, with: subject)
        let facts = try SidecarMetadata(xmp: Array(packet.utf8))
        let bytes = try #require(facts.keywords?.first?.utf8.count)
        #expect((1...1024).contains(bytes))
    }

    @Test func `a description with commas is read completely`() { check(Array(Self.packet.utf8), "packet") }

    @Test func `the packet header may be missing, and white space may come first`() {
        for (name, text) in [
            ("meta", Self.meta), ("RDF", Self.rdf), ("newline", "\n" + Self.packet),
            ("newlines", "\r\n\n \t" + Self.meta),
            ("prologue", "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + Self.meta),
            ("prologue and RDF", "\n<?xml version=\"1.0\"?>\n\n" + Self.rdf),
            ("comment", "<!-- made by a program -->\n" + Self.meta), ("byte order mark", "\u{FEFF}" + Self.meta),
            ("byte order mark and newline", "\u{FEFF}\n" + Self.packet),
        ] {
            check(Array(text.utf8), name)
        }
    }

    @Test func `UTF-16 and UTF-32 are decoded, with a byte order mark and without`() throws {
        for text in [
            Self.packet, Self.meta, "<?xml version=\"1.0\" encoding=\"UTF-16\"?>\n" + Self.meta, "\n" + Self.rdf,
        ] {
            for (name, encoding) in [
                ("UTF-16BE", String.Encoding.utf16BigEndian), ("UTF-16LE", .utf16LittleEndian),
                ("UTF-32BE", .utf32BigEndian), ("UTF-32LE", .utf32LittleEndian),
            ] {
                for mark in ["", "\u{FEFF}"] {
                    check([UInt8](try #require((mark + text).data(using: encoding))), "\(name) \(text.prefix(12))")
                }
            }
        }
    }

    @Test func `the encoding of the XML declaration is ignored`() throws {
        for encoding in ["UTF-16", "windows-1252", "ISO-8859-1", "UTF-8"] {
            for text in [Self.meta, Self.packet] {
                check(Array("<?xml version=\"1.0\" encoding=\"\(encoding)\"?>\n\(text)".utf8), encoding)
            }
        }
        let old = "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>" + Self.meta.replacing(", 海", with: "")
        let facts = try SidecarMetadata(xmp: [UInt8](try #require(old.data(using: .isoLatin1))))
        #expect(facts.caption == "Wellen, Küste")
        // One value is not in UTF-8.
        let parts = Self.meta.split(separator: "Wellen").map { Array($0.utf8) }
        let mixed = parts[0] + [0x57, 0xE4, 0x6C, 0x6C, 0x65, 0x20, 0x96, 0x20] + parts[1]
        #expect(try SidecarMetadata(xmp: mixed).caption == "Wälle – , Küste, 海")
    }

    @Test func `a sidecar that cannot be parsed is refused, and an empty one is reported as empty`() {
        let type = "<!DOCTYPE x [<!ENTITY a SYSTEM \"file:///etc/passwd\">]>"
        for text in [
            String(Self.meta.dropLast(20)), Self.meta.replacing("</rdf:Alt>", with: ""), type + Self.meta,
            Self.meta.replacing("xmlns:xmp=\"http://ns.adobe.com/xap/1.0/\"", with: ""),
        ] {
            let error = #expect(throws: MetadataError.self) { try SidecarMetadata(xmp: Array(text.utf8)) }
            #expect(error == .invalidSidecar(isEmpty: false), "\(text)")
        }
        let error = #expect(throws: MetadataError.self) { try SidecarMetadata(xmp: []) }
        #expect(error?.message.contains("empty") == true)
    }

    @Test func `bytes after the end of the packet are ignored`() {
        check(Array(Self.packet.utf8) + [0, 0, 10, 0], "padding")
        check(Array((Self.packet + "\n<trailer").utf8), "trailer")
    }

    @Test func `the date of a sidecar is never that of its last change`() throws {
        let text = Self.rdf.replacing("xmp:Rating=\"4.0\"", with: "xmp:ModifyDate=\"2024-06-01T12:30:00Z\"")
        #expect(try SidecarMetadata(xmp: Array(text.utf8)).captureDate == nil)
    }

    @Test func `texts without XMP are refused`() {
        for bytes in [
            Array("no XMP".utf8), [0xFF, 0xFE, 0x41, 0], [0xFE, 0xFF], [0, 0, 0, 0x41], [0xFF, 0xFE, 0xFF],
        ] {
            #expect(throws: MetadataError.self) { try SidecarMetadata(xmp: bytes) }
        }
    }
}
