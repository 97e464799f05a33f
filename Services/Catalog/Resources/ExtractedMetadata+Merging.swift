import Metadata
import PhotoModel

/// Merges the metadata of an image with that of the other files of its asset.
extension ExtractedMetadata {
    /// Applies a sidecar: its values replace the image's, because it was written later.
    ///
    /// The date of another program's sidecar counts only if the image has none, or only that of its last change: it is
    /// often a copy that is less exact. A sidecar that Safelight exported with this image has all values of the
    /// library: its date counts, and a caption, keywords, a location or a date that it does not have were removed.
    ///
    /// - Parameter digest: the digest of the image
    mutating func merge(_ sidecar: SidecarMetadata, of digest: String? = nil) {
        let isComplete = sidecar.original != nil && sidecar.original == digest
        if isComplete { (caption, keywords, location) = (nil, [], nil) }
        if let value = sidecar.rating { rating = value }
        if let value = Self.text(sidecar.caption, 65_536) { caption = value }
        if let words = sidecar.keywords { keywords = words.prefix(1024).compactMap { Self.text($0, 1024) } }
        cameraMake = Self.text(sidecar.cameraMake, 1024) ?? cameraMake
        cameraModel = Self.text(sidecar.cameraModel, 1024) ?? cameraModel
        lensModel = Self.text(sidecar.lensModel, 1024) ?? lensModel
        if let coordinates = sidecar.location { location = Self.location(coordinates) }
        if isComplete {
            setDate(exportedIn: sidecar)
        } else {
            setMissingDate(from: sidecar)
            if sidecar.location != nil || sidecar.captureDate != nil { deriveOffset() }
        }
        if let more = sidecar.metadata?.stored { metadata = metadata?.replacing(with: more) ?? more }
    }

    /// Adds the values of the raw file beside the image that the image does not have: it may have been made from the
    /// raw file without its metadata.
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
            isInstant = raw.isInstant
        }
        location = location ?? raw.location
        deriveOffset()
        if let more = raw.metadata { metadata = metadata.map { more.replacing(with: $0) } ?? more }
    }

    /// Sets the date to that of a sidecar if the image has none, or only that of its last change.
    private mutating func setMissingDate(from sidecar: SidecarMetadata) {
        guard creationDate == nil || isModificationDate, let date = sidecar.captureDate,
            AssetPatch.dates.contains(date)
        else { return }
        creationDate = date
        isModificationDate = false
        creationOffset = sidecar.captureOffset
        isOffsetDerived = sidecar.isOffsetDerived
        isInstant = sidecar.isCaptureTimeUTC
    }

    /// Sets the date to that of a sidecar that was exported with the image, as the library had it.
    private mutating func setDate(exportedIn sidecar: SidecarMetadata) {
        guard var date = sidecar.captureDate else {
            // The time of the file's last change is not exported, so it was not necessarily removed.
            guard !isModificationDate else { return }
            (creationDate, creationOffset, isOffsetDerived, isInstant) = (nil, nil, false, false)
            return
        }
        var offset = sidecar.captureOffset
        if sidecar.isOffsetDerived, let derived = offset {
            // The library had no offset, although it had the location.
            (date, offset) = (date + Int64(derived) * 1_000_000, nil)
        }
        // If the dates are equal, that of the image stays with its flags, which the sidecar does not have. Local times
        // are compared, because an offset in a sidecar has no seconds.
        let known = creationDate.map { $0 + Int64(creationOffset ?? 0) * 1_000_000 }
        let isSameClock = known == date + Int64(offset ?? 0) * 1_000_000
        let isSameOffset = creationOffset.map { $0 / 60 } == offset.map { $0 / 60 }
        guard !isSameClock || !isSameOffset, AssetPatch.dates.contains(date) else { return }
        (creationDate, creationOffset, isInstant) = (date, offset, sidecar.isCaptureTimeUTC)
        (isModificationDate, isOffsetDerived) = (false, false)
    }

    /// Sets the offset of a date that has none of its own to that of the time zone of the location, which may be from
    /// another file.
    private mutating func deriveOffset() {
        guard let location, let date = creationDate, creationOffset == nil || isOffsetDerived else { return }
        let coordinates = PhotoMetadata.Coordinates(latitude: location.latitude, longitude: location.longitude)
        let time = isInstant ? date : date + Int64(creationOffset ?? 0) * 1_000_000
        guard let offset = coordinates.timeZoneOffset(at: time, isMoment: isInstant) else { return }
        let instant = isInstant ? date : time - Int64(offset) * 1_000_000
        guard AssetPatch.dates.contains(instant) else { return }
        (creationDate, creationOffset, isOffsetDerived) = (instant, offset, true)
    }

    /// Returns a location as it is stored, without an impossible altitude.
    static func location(_ coordinates: PhotoMetadata.Coordinates) -> Location {
        Location(
            latitude: coordinates.latitude,
            longitude: coordinates.longitude,
            altitude: coordinates.altitude.flatMap { (-20_000...100_000).contains($0) ? $0 : nil }
        )
    }
}
