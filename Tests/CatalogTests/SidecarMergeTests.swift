import Metadata
import PhotoModel
import Testing

@testable import Catalog

/// Values of a sidecar together with those of its photo.
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

    @Test func `a date without an offset is one by the clock of the location, whichever file has which`() {
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

    @Test func `a date with an offset of its own, and one without a location, stay as they are`() {
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

    @Test func `a moment, as of GPS, stays the same and gets the offset of the location`() {
        let facts = merged(
            Self.newYork,
            { photo in
                photo.captureDate = Self.noon
                photo.isCaptureMoment = true
            }
        )
        #expect((facts.creationDate, facts.creationOffset, facts.isOffsetDerived) == (Self.noon, -14_400, true))
    }

    @Test func `camera and lens of a sidecar replace those of the photo, each for itself`() {
        var photo = PhotoMetadata(contentType: "public.jpeg", pixelWidth: 4, pixelHeight: 3)
        (photo.cameraMake, photo.cameraModel) = ("NORITSU", "QSS-32")
        var facts = ExtractedMetadata(photo)
        var values = SidecarMetadata()
        (values.cameraMake, values.lensModel) = ("Leica", "Summicron 35mm")
        facts.merge(values)
        #expect((facts.cameraMake, facts.cameraModel, facts.lensModel) == ("Leica", "QSS-32", "Summicron 35mm"))
    }
}
