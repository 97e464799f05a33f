import Metadata
import PhotoModel

/// The values of the other files of an asset.
extension ExtractedMetadata {
    /// Applies a sidecar: its values replace the image's, because it was written later.
    ///
    /// The date of another program's sidecar counts only if the image has none, or only that of its last change: it is
    /// often a copy that is less exact. A sidecar that Safelight exported with this image has all that the library
    /// knew: its date counts, and a caption, keywords, a location or a date that it does not have were removed.
    ///
    /// - Parameter digest: that of the image
    mutating func merge(_ sidecar: SidecarMetadata, of digest: String? = nil) {
        let isComplete = sidecar.original != nil && sidecar.original == digest
        if isComplete { (caption, keywords, location) = (nil, [], nil) }
        if let value = sidecar.rating { rating = value }
        if let value = Self.text(sidecar.caption, 65_536) { caption = value }
        if let words = sidecar.keywords { keywords = words.prefix(1024).compactMap { Self.text($0, 1024) } }
        cameraMake = Self.text(sidecar.cameraMake, 1024) ?? cameraMake
        cameraModel = Self.text(sidecar.cameraModel, 1024) ?? cameraModel
        lensModel = Self.text(sidecar.lensModel, 1024) ?? lensModel
        if let place = sidecar.location { location = Self.location(place) }
        if isComplete {
            takeDate(exportedIn: sidecar)
        } else {
            takeMissingDate(of: sidecar)
            if sidecar.location != nil || sidecar.captureDate != nil { deriveOffset() }
        }
        if let more = sidecar.metadata?.stored { metadata = metadata?.replacing(with: more) ?? more }
    }

    /// Adds what the raw file beside the image says and the image does not, which may have been made of it without
    /// metadata.
    mutating func fill(from raw: ExtractedMetadata) {
        if rating == 0 { rating = raw.rating }
        caption = caption ?? raw.caption
        if keywords.isEmpty { keywords = raw.keywords }
        cameraMake = cameraMake ?? raw.cameraMake
        cameraModel = cameraModel ?? raw.cameraModel
        lensModel = lensModel ?? raw.lensModel
        if creationDate == nil || isModificationDate && !raw.isModificationDate, raw.creationDate != nil {
            (creationDate, creationOffset) = (raw.creationDate, raw.creationOffset)
            (isModificationDate, isOffsetDerived) = (raw.isModificationDate, raw.isOffsetDerived)
            isMoment = raw.isMoment
        }
        location = location ?? raw.location
        deriveOffset()
        if let more = raw.metadata { metadata = metadata.map { more.replacing(with: $0) } ?? more }
    }

    /// Takes the date of a sidecar if there is none, or only that of the last change.
    private mutating func takeMissingDate(of sidecar: SidecarMetadata) {
        guard creationDate == nil || isModificationDate, let date = sidecar.captureDate,
            AssetPatch.dates.contains(date)
        else { return }
        creationDate = date
        isModificationDate = false
        creationOffset = sidecar.captureOffset
        isOffsetDerived = sidecar.isOffsetDerived
        isMoment = sidecar.isCaptureMoment
    }

    /// Takes the date of a sidecar that was exported with the image, as the library had it.
    private mutating func takeDate(exportedIn sidecar: SidecarMetadata) {
        guard var date = sidecar.captureDate else {
            // The time of the file's last change is not a date of capture, and may be missing for that.
            guard !isModificationDate else { return }
            (creationDate, creationOffset, isOffsetDerived, isMoment) = (nil, nil, false, false)
            return
        }
        var offset = sidecar.captureOffset
        if sidecar.isOffsetDerived, let derived = offset {
            // The library had none, although it knew the location.
            (date, offset) = (date + Int64(derived) * 1_000_000, nil)
        }
        // An image with the same date also says if that is the time of the last change, and if the offset is that of
        // the location. Times by the clock are compared, because an offset in a sidecar has no seconds.
        let known = creationDate.map { $0 + Int64(creationOffset ?? 0) * 1_000_000 }
        let isSameClock = known == date + Int64(offset ?? 0) * 1_000_000
        let isSameOffset = creationOffset.map { $0 / 60 } == offset.map { $0 / 60 }
        guard !isSameClock || !isSameOffset, AssetPatch.dates.contains(date) else { return }
        (creationDate, creationOffset, isMoment) = (date, offset, sidecar.isCaptureMoment)
        (isModificationDate, isOffsetDerived) = (false, false)
    }

    /// Gives a date without an offset of its own that of the time zone of the location, which may be from another file.
    private mutating func deriveOffset() {
        guard let place = location, let date = creationDate, creationOffset == nil || isOffsetDerived else { return }
        let known = PhotoMetadata.Coordinates(latitude: place.latitude, longitude: place.longitude)
        let clock = isMoment ? date : date + Int64(creationOffset ?? 0) * 1_000_000
        guard let offset = known.timeZoneOffset(at: clock, isMoment: isMoment) else { return }
        let moment = isMoment ? date : clock - Int64(offset) * 1_000_000
        guard AssetPatch.dates.contains(moment) else { return }
        (creationDate, creationOffset, isOffsetDerived) = (moment, offset, true)
    }

    /// Returns a location as it is stored, without an impossible altitude.
    static func location(_ place: PhotoMetadata.Coordinates) -> Location {
        Location(
            latitude: place.latitude,
            longitude: place.longitude,
            altitude: place.altitude.flatMap { (-20_000...100_000).contains($0) ? $0 : nil }
        )
    }
}
