import Metadata
import PhotoModel
import Testing

@testable import Catalog

/// Tests of merging the values of a sidecar with those of its photo.
@Suite(.timeLimit(.minutes(1)))
struct SidecarMergeTests {
    /// 2024-06-01 12:00 UTC.
    private static let noon: Int64 = 1_717_243_200_000_000
    private static let hour: Int64 = 3_600_000_000
    private static let newYork = PhotoMetadata.Coordinates(latitude: 40.7, longitude: -74)
    private static let berlin = PhotoMetadata.Coordinates(latitude: 52.5, longitude: 13.4)

    private func merged(
        _ sidecar: PhotoMetadata.Coordinates?,
        _ change: (inout PhotoMetadata) -> Void,
        date: Int64? = nil
    ) -> ExtractedMetadata {
        var photo = PhotoMetadata(contentType: "public.jpeg", pixelWidth: 4, pixelHeight: 3)
        change(&photo)
        var facts = ExtractedMetadata(photo)
        var values = SidecarMetadata()
        values.location = sidecar
        values.captureDate = date
        facts.merge(values)
        return facts
    }

    @Test func `a date without an offset is local time at the location, whichever file has the date`() {
        let all = [
            merged(Self.newYork, { $0.captureDate = Self.noon }),
            // The offset was that of another location.
            merged(
                Self.newYork,
                { photo in
                    photo.location = Self.berlin
                    photo.captureDate = Self.noon - 2 * Self.hour
                    photo.captureOffset = 7200
                    photo.isOffsetDerived = true
                }
            ),
            merged(nil, { $0.location = Self.newYork }, date: Self.noon),
        ]
        for facts in all {
            #expect((facts.creationDate, facts.creationOffset) == (Self.noon + 4 * Self.hour, -14_400))
            #expect(facts.isOffsetDerived)
        }
    }

    @Test func `a date with an offset of its own, and a date without a location, are not changed`() {
        let own = merged(
            Self.newYork,
            { photo in
                photo.captureDate = Self.noon
                photo.captureOffset = 7200
            }
        )
        #expect((own.creationDate, own.creationOffset, own.isOffsetDerived) == (Self.noon, 7200, false))
        let bare = merged(nil, { $0.captureDate = Self.noon })
        #expect((bare.creationDate, bare.creationOffset, bare.isOffsetDerived) == (Self.noon, nil, false))
    }

    @Test func `a date in UTC, as from GPS, stays the same and gets the offset of the location`() {
        let facts = merged(
            Self.newYork,
            { photo in
                photo.captureDate = Self.noon
                photo.isCaptureTimeUTC = true
            }
        )
        #expect((facts.creationDate, facts.creationOffset, facts.isOffsetDerived) == (Self.noon, -14_400, true))
    }

    // MARK: Exported sidecars

    private static let digest = String(repeating: "ab", count: 32)

    /// Returns the metadata of a photo with a caption, keywords and a location, merged with the sidecar that was
    /// exported with it.
    private func exported(
        _ changePhoto: (inout PhotoMetadata) -> Void = { _ in },
        _ changeSidecar: (inout SidecarMetadata) -> Void = { _ in },
        of digest: String = Self.digest
    ) -> ExtractedMetadata {
        var photo = PhotoMetadata(contentType: "public.jpeg", pixelWidth: 4, pixelHeight: 3)
        (photo.caption, photo.keywords, photo.location) = ("Waves", ["sea"], Self.berlin)
        (photo.rating, photo.captureDate, photo.captureOffset) = (4, Self.noon, 7200)
        changePhoto(&photo)
        var facts = ExtractedMetadata(photo)
        var values = SidecarMetadata()
        values.original = Self.digest
        (values.rating, values.keywords) = (0, [])
        changeSidecar(&values)
        facts.merge(values, of: digest)
        return facts
    }

    @Test func `an exported sidecar removes the values that it does not have, but only from its own original`() {
        let facts = exported()
        #expect((facts.caption, facts.keywords, facts.location, facts.rating) == (nil, [], nil, 0))
        #expect((facts.creationDate, facts.creationOffset, facts.isOffsetDerived) == (nil, nil, false))
        let other = exported(of: String(repeating: "cd", count: 32))
        #expect((other.caption, other.keywords, other.rating) == ("Waves", [], 0))
        #expect(other.location != nil && other.creationDate == Self.noon)
    }

    @Test func `the date of an exported sidecar replaces that of the photo, also without an offset`() {
        let dated = exported({ _ in }, { ($0.captureDate, $0.captureOffset) = (Self.noon - Self.hour, 10_800) })
        #expect((dated.creationDate, dated.creationOffset) == (Self.noon - Self.hour, 10_800))
        // The sidecar has a location, and the reader derived an offset from it; the library had none.
        let bare = exported(
            { _ in },
            { sidecar in
                (sidecar.captureDate, sidecar.captureOffset) = (Self.noon - 2 * Self.hour, 7200)
                (sidecar.isOffsetDerived, sidecar.location) = (true, Self.berlin)
            }
        )
        #expect((bare.creationDate, bare.creationOffset, bare.isOffsetDerived) == (Self.noon, nil, false))
        #expect(bare.location?.latitude == Self.berlin.latitude)
    }

    @Test func `a date that equals the date of the file keeps the marks of the file's date`() {
        func ofLastChange(_ photo: inout PhotoMetadata) {
            photo.captureDateSource = .exifModified
            photo.captureOffset = nil
        }
        let modified = exported(ofLastChange, { $0.captureDate = Self.noon })
        #expect((modified.creationDate, modified.isModificationDate) == (Self.noon, true))
        // An offset in a sidecar has no seconds.
        let derived = exported(
            { photo in
                (photo.captureDate, photo.captureOffset, photo.isOffsetDerived) = (Self.noon, -2670, true)
            },
            { ($0.captureDate, $0.captureOffset) = (Self.noon - 30_000_000, -2640) }
        )
        #expect((derived.creationDate, derived.creationOffset, derived.isOffsetDerived) == (Self.noon, -2670, true))
        // A sidecar without a date was exported with a file that has only the date of its last change.
        let undated = exported(ofLastChange)
        #expect((undated.creationDate, undated.isModificationDate) == (Self.noon, true))
    }

    // MARK: Raw files

    @Test func `a photo receives from its RAW file the metadata that it does not have`() {
        var file = PhotoMetadata(contentType: "com.adobe.raw-image", pixelWidth: 4, pixelHeight: 3)
        (file.caption, file.keywords, file.rating, file.location) = ("Waves", ["sea"], 4, Self.newYork)
        (file.captureDate, file.captureOffset, file.cameraMake) = (Self.noon, -14_400, "Leica")
        file.metadata = AssetMetadata()
        file.metadata?.iso = 200
        file.metadata?.city = "Oslo"
        let raw = ExtractedMetadata(file)
        var stripped = ExtractedMetadata(PhotoMetadata(contentType: "public.jpeg", pixelWidth: 4, pixelHeight: 3))
        stripped.fill(from: raw)
        #expect((stripped.caption, stripped.keywords, stripped.rating) == ("Waves", ["sea"], 4))
        #expect((stripped.creationDate, stripped.creationOffset) == (raw.creationDate, raw.creationOffset))
        #expect((stripped.location, stripped.cameraMake) == (raw.location, "Leica"))
        #expect(stripped.contentType == "public.jpeg")

        var photo = PhotoMetadata(contentType: "public.jpeg", pixelWidth: 4, pixelHeight: 3)
        (photo.caption, photo.captureDate) = ("Sand", Self.noon + 1)
        photo.captureDateSource = .exifModified
        photo.metadata = AssetMetadata()
        photo.metadata?.city = "Bergen"
        var own = ExtractedMetadata(photo)
        own.fill(from: raw)
        #expect((own.caption, own.metadata?.city, own.metadata?.iso) == ("Sand", "Bergen", 200))
        #expect((own.creationDate, own.isModificationDate) == (raw.creationDate, false))
        photo.captureDateSource = .exifOriginal
        own = ExtractedMetadata(photo)
        own.fill(from: raw)
        #expect((own.creationDate, own.creationOffset) == (Self.noon + 1 + 4 * Self.hour, -14_400))
        #expect(own.isOffsetDerived)
    }

    @Test func `camera and lens of a sidecar replace those of the photo, each independently`() {
        var photo = PhotoMetadata(contentType: "public.jpeg", pixelWidth: 4, pixelHeight: 3)
        (photo.cameraMake, photo.cameraModel) = ("NORITSU", "QSS-32")
        var facts = ExtractedMetadata(photo)
        var values = SidecarMetadata()
        (values.cameraMake, values.lensModel) = ("Leica", "Summicron 35mm")
        facts.merge(values)
        #expect((facts.cameraMake, facts.cameraModel, facts.lensModel) == ("Leica", "QSS-32", "Summicron 35mm"))
    }
}
