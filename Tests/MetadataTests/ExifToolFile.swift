import Foundation
import Metadata
import SamplePhotos
import TestSupport
import Testing

/// Files that exiftool writes for a test.
enum ExifToolFile {
    /// A small JPEG without metadata.
    static let plainJPEG = TestImages.jpeg(width: 16, height: 8, orientation: 0, exif: nil)
    /// A small PNG without metadata.
    static let plainPNG = TestImages.png(width: 6, height: 4) { _, _ in (1, 2, 3, 255) }

    /// Returns a JPEG or PNG with tags such as "-XMP-dc:Description=text".
    static func bytes(_ tags: [String], from source: [UInt8] = plainJPEG) throws -> [UInt8] {
        try #require(try files([tags], from: source).first)
    }

    /// Returns one file for each list of tags. Exiftool is started once.
    static func files(_ lists: [[String]], from source: [UInt8] = plainJPEG) throws -> [[UInt8]] {
        let (exiftool, folder) = (try Needed.program("exiftool"), try TemporaryFolder("exiftool"))
        var arguments: [String] = []
        for (index, tags) in lists.enumerated() {
            try folder.write(source, to: "\(index)")
            arguments += ["-q", "-m", "-overwrite_original"] + tags + [folder.file("\(index)"), "-execute"]
        }
        try folder.write(Array(arguments.joined(separator: "\n").utf8), to: "arguments")
        _ = try ExternalTool.run(exiftool, ["-@", folder.file("arguments")])
        return try lists.indices.map { index in
            let bytes = [UInt8](try Data(contentsOf: folder.url.appending(path: "\(index)")))
            try #require(bytes != source, "exiftool wrote nothing for \(lists[index])")
            return bytes
        }
    }

    /// Returns the metadata of a file with the given tags.
    static func facts(_ tags: [String], from source: [UInt8] = plainJPEG) throws -> PhotoMetadata {
        try MetadataReader.facts(of: try bytes(tags, from: source))
    }
}
