import Contracts
import Foundation
import PhotoClient
import PhotoModel
import TestSupport
import Testing

/// Values of a library that come to another one with `export --sidecar` and `import`.
@Suite(.serialized, .timeLimit(.minutes(3)))
struct ExportedSidecarTests {
    /// A photo by the name of its file, with what differs from it in the library.
    private static let photos: [(name: String, tags: [String], changes: [String])] = [
        (
            "removed.jpg",
            [
                "-XMP-dc:Description=Waves", "-XMP-dc:Subject=sea", "-XMP-xmp:Rating=4", "-GPSLatitude=52.5",
                "-GPSLatitudeRef=N", "-GPSLongitude=13.4", "-GPSLongitudeRef=E",
                "-ExifIFD:DateTimeOriginal=2024:07:01 12:30:00",
            ],
            ["--no-keywords", "--caption", "", "--no-location", "--rating", "0"]
        ),
        (
            "dated.jpg", ["-ExifIFD:DateTimeOriginal=2024:07:01 12:30:00"],
            ["--date", "2021-02-02T02:02:02+03:00", "--location", "40.7,-74", "--caption", "Snow"]
        ),
        ("modified.jpg", ["-IFD0:ModifyDate=2023:05:06 07:08:09"], ["--rating", "2"]),
        (
            "derived.jpg",
            [
                // The clocks of Monrovia were 44 minutes and 30 seconds behind UTC.
                "-ExifIFD:DateTimeOriginal=1960:07:01 12:30:00", "-GPSLatitude=6.3", "-GPSLatitudeRef=N",
                "-GPSLongitude=10.75", "-GPSLongitudeRef=W",
            ],
            ["--rating", "3"]
        ),
    ]

    private func assets(_ services: SafelightFixture) async throws -> [String: Asset] {
        let fetched = try await services.library().assets(FetchDescription(.assets)).assets
        return Dictionary(fetched.map { ($0.originalFilename ?? "", $0) }) { first, _ in first }
    }

    @Test func `an import of an exported folder has the dates of the library, and no value that was removed there`()
        async throws
    {
        let exiftool = try Needed.program("exiftool")
        let first = try SafelightFixture("first", environment: ["TZ": "UTC"])
        for (index, photo) in Self.photos.enumerated() {
            let plain = TestImages.jpeg(width: 32, height: 24, orientation: 1, exif: nil, seed: UInt64(index + 1))
            let path = try first.folder.write(plain, to: "in/" + photo.name)
            let run = try RunningProgram.run(exiftool, ["-q", "-m", "-overwrite_original"] + photo.tags + [path])
            try #require(run.status == 0, "\(run.errors)")
        }
        try first.start([.catalog, .editor])
        #expect(try first.safelight(["import", first.folder.file("in")]).status == 0)
        let imported = try await assets(first)
        for photo in Self.photos {
            let id = try #require(imported[photo.name]).id.text
            let changed = try first.safelight(["set", id] + photo.changes)
            #expect(changed.status == 0, "\(changed.errors)")
        }
        let out = first.folder.file("out")
        let exported = try first.safelight(["export", "--where", "TRUEPREDICATE", "--output", out, "--sidecar"])
        #expect(exported.status == 0, "\(exported.errors)")

        let second = try SafelightFixture("second", environment: ["TZ": "UTC"])
        try second.start([.catalog])
        #expect(try second.safelight(["import", out]).status == 0)
        let (expected, actual) = (try await assets(first), try await assets(second))
        for photo in Self.photos {
            let (before, after) = (try #require(expected[photo.name]), try #require(actual[photo.name]))
            #expect(
                (after.creationDate, after.creationOffset) == (before.creationDate, before.creationOffset),
                "\(photo.name)"
            )
            #expect(after.hasOnlyModificationDate == before.hasOnlyModificationDate, "\(photo.name)")
            #expect(after.isCreationOffsetDerived == before.isCreationOffsetDerived, "\(photo.name)")
            #expect(
                (after.caption, after.keywords, after.rating) == (before.caption, before.keywords, before.rating),
                "\(photo.name)"
            )
            #expect((after.location == nil) == (before.location == nil), "\(photo.name)")
        }
        let dated = try #require(actual["dated.jpg"])
        #expect((dated.creationDate, dated.creationOffset) == (1_612_220_522_000_000, 10_800))
        #expect(try #require(actual["removed.jpg"]).keywords.isEmpty)
        #expect(try #require(actual["modified.jpg"]).hasOnlyModificationDate)
        #expect(try #require(actual["derived.jpg"]).isCreationOffsetDerived)
    }
}
