public import JSONValue

/// A projection of an asset: the members that its JSON text has, and the form of the dates.
public struct AssetProjection: Sendable, Hashable {
    /// The members in the order of ``Asset/table``.
    enum Member: Int, CaseIterable {
        case id, revision, contentRevision, mediaType, mediaSubtypes, playbackStyle, playbackVariation, sourceType
        case contentType, pixelWidth, pixelHeight, duration, creationDate, creationOffset, hasOnlyModificationDate
        case isCreationOffsetDerived, modificationDate, contentModificationDate, addedDate, isRecentlyAdded
        case trashedDate, location, isFavorite, isHidden, burstIdentifier, representsBurst, burstSelectionTypes
        case sharpness, rating, caption, keywords, originalFilename, cameraMake, cameraModel, lensModel, metadata
        case adjustmentFormatIdentifier, adjustmentFormatVersion, adjustmentDate, adjustmentsState
        case originalResourceChoice, resources, memberships

        var name: String { String(describing: self) }
    }

    private var bits: UInt64
    /// True if dates are RFC 3339 text in UTC, false if they are microseconds since 1970.
    let datesAreText: Bool

    /// - Parameter members: the names of the members; nil for all of them
    public init(members: [String]? = nil, datesAreText: Bool = false) {
        self.datesAreText = datesAreText
        bits =
            members.map { names in
                Member.allCases.reduce(0) { $0 | (names.contains($1.name) ? 1 << UInt64($1.rawValue) : 0) }
            } ?? .max
    }

    /// Every member, and dates in microseconds: the projection of records and messages.
    public static let full = AssetProjection()

    /// The projection for identities with a limited grant, for which the user's albums do not exist.
    public var withoutMemberships: AssetProjection {
        var projection = self
        projection.bits &= ~(1 << UInt64(Member.memberships.rawValue))
        return projection
    }

    func has(_ member: Member) -> Bool { bits & (1 << UInt64(truncatingIfNeeded: member.rawValue)) != 0 }

    /// True if the text depends on the asset's resources.
    public var hasResources: Bool { has(.resources) || has(.originalResourceChoice) }
    /// True if the text has the keywords.
    public var hasKeywords: Bool { has(.keywords) }
    /// True if the text has the albums.
    public var hasMemberships: Bool { has(.memberships) }
    /// True if the text has the metadata.
    public var hasMetadata: Bool { has(.metadata) }
}

// MARK: - The JSON text of an asset

// The JSON text is written member by member: a page has a thousand assets and a record two states of each, and a tree
// of values costs many times as much as the text. A test compares the text with that of ``Asset/table``.

extension Asset {
    /// Writes the asset as JSON.
    public func write(to writer: inout JSONWriter, _ projection: AssetProjection = .full) {
        writer.writeObject { writer in
            writeFacts(to: &writer, projection)
            writeTexts(to: &writer, projection)
        }
    }

    fileprivate func writeFacts(to writer: inout JSONWriter, _ projection: AssetProjection) {
        if projection.has(.id) { writer.append(",\"id\":", id) }
        if projection.has(.revision) { writer.append(",\"revision\":", revision) }
        if projection.has(.contentRevision) { writer.append(",\"contentRevision\":", contentRevision) }
        if projection.has(.mediaType) { writer.append(",\"mediaType\":", mediaType.rawValue) }
        if projection.has(.mediaSubtypes) { writer.append(",\"mediaSubtypes\":", mediaSubtypes) }
        if projection.has(.playbackStyle) { writer.append(",\"playbackStyle\":", playbackStyle.rawValue) }
        if projection.has(.playbackVariation), playbackVariation != .none {
            writer.append(",\"playbackVariation\":", playbackVariation.rawValue)
        }
        if projection.has(.sourceType) { writer.append(",\"sourceType\":", sourceType.rawValue) }
        if projection.has(.contentType) { writer.append(",\"contentType\":", contentType) }
        if projection.has(.pixelWidth) { writer.append(",\"pixelWidth\":", pixelWidth) }
        if projection.has(.pixelHeight) { writer.append(",\"pixelHeight\":", pixelHeight) }
        if projection.has(.duration) { writer.append(",\"duration\":", duration) }
        if projection.has(.creationDate), let creationDate {
            writer.append(",\"creationDate\":", date: creationDate, projection)
        }
        if projection.has(.creationOffset), let creationOffset { writer.append(",\"creationOffset\":", creationOffset) }
        if projection.has(.hasOnlyModificationDate), hasOnlyModificationDate {
            writer.append(",\"hasOnlyModificationDate\":", true)
        }
        if projection.has(.isCreationOffsetDerived), isCreationOffsetDerived {
            writer.append(",\"isCreationOffsetDerived\":", true)
        }
        if projection.has(.modificationDate) {
            writer.append(",\"modificationDate\":", date: modificationDate, projection)
        }
        if projection.has(.contentModificationDate) {
            writer.append(",\"contentModificationDate\":", date: contentModificationDate, projection)
        }
        if projection.has(.addedDate) { writer.append(",\"addedDate\":", date: addedDate, projection) }
        if projection.has(.isRecentlyAdded), isRecentlyAdded { writer.append(",\"isRecentlyAdded\":", true) }
        if projection.has(.trashedDate), let trashedDate {
            writer.append(",\"trashedDate\":", date: trashedDate, projection)
        }
        if projection.has(.location), let location {
            writer.append(",\"location\":")
            location.write(to: &writer)
        }
        if projection.has(.isFavorite) { writer.append(",\"isFavorite\":", isFavorite) }
        if projection.has(.isHidden) { writer.append(",\"isHidden\":", isHidden) }
    }

    /// Returns true if ``writeTexts(to:_:)`` writes the same as for another state of the asset.
    fileprivate func hasSameTexts(as other: Asset) -> Bool {
        burstIdentifier == other.burstIdentifier && representsBurst == other.representsBurst
            && burstSelectionTypes.rawValue == other.burstSelectionTypes.rawValue && sharpness == other.sharpness
            && rating == other.rating && caption == other.caption && keywords == other.keywords
            && originalFilename == other.originalFilename && cameraMake == other.cameraMake
            && cameraModel == other.cameraModel && lensModel == other.lensModel
            && storedMetadata == other.storedMetadata
            && adjustmentFormatIdentifier == other.adjustmentFormatIdentifier
            && adjustmentFormatVersion == other.adjustmentFormatVersion && adjustmentDate == other.adjustmentDate
            && resources == other.resources && memberships == other.memberships
    }

    fileprivate func writeTexts(to writer: inout JSONWriter, _ projection: AssetProjection) {
        if projection.has(.burstIdentifier), let burstIdentifier {
            writer.append(",\"burstIdentifier\":", burstIdentifier)
        }
        if projection.has(.representsBurst), representsBurst { writer.append(",\"representsBurst\":", true) }
        if projection.has(.burstSelectionTypes), burstSelectionTypes != [] {
            writer.append(",\"burstSelectionTypes\":", burstSelectionTypes)
        }
        if projection.has(.sharpness), let sharpness { writer.append(",\"sharpness\":", sharpness) }
        if projection.has(.rating), rating != 0 { writer.append(",\"rating\":", rating) }
        if projection.has(.caption), let caption { writer.append(",\"caption\":", caption) }
        if projection.has(.keywords), !keywords.isEmpty { writer.append(",\"keywords\":", keywords) }
        if projection.has(.originalFilename), let originalFilename {
            writer.append(",\"originalFilename\":", originalFilename)
        }
        if projection.has(.cameraMake), let cameraMake { writer.append(",\"cameraMake\":", cameraMake) }
        if projection.has(.cameraModel), let cameraModel { writer.append(",\"cameraModel\":", cameraModel) }
        if projection.has(.lensModel), let lensModel { writer.append(",\"lensModel\":", lensModel) }
        if projection.has(.metadata), let metadata {
            writer.append(",\"metadata\":")
            metadata.write(to: &writer)
        }
        if projection.has(.adjustmentFormatIdentifier), let adjustmentFormatIdentifier {
            writer.append(",\"adjustmentFormatIdentifier\":", adjustmentFormatIdentifier)
        }
        if projection.has(.adjustmentFormatVersion), let adjustmentFormatVersion {
            writer.append(",\"adjustmentFormatVersion\":", adjustmentFormatVersion)
        }
        if projection.has(.adjustmentDate), let adjustmentDate {
            writer.append(",\"adjustmentDate\":", date: adjustmentDate, projection)
        }
        if projection.has(.adjustmentsState), hasAdjustments {
            writer.append(",\"adjustmentsState\":", adjustmentsState.rawValue)
        }
        if projection.has(.originalResourceChoice), let choice = originalResourceChoice {
            writer.append(",\"originalResourceChoice\":", choice.rawValue)
        }
        if projection.has(.resources) {
            writer.append(",\"resources\":")
            writer.writeList(resources) { $1.write(to: &$0) }
        }
        if projection.has(.memberships), !memberships.isEmpty {
            writer.append(",\"memberships\":")
            writer.writeList(memberships) { $1.write(to: &$0) }
        }
    }
}

extension EntityChange where Entity == Asset {
    /// Writes the change as JSON. Most changes concern neither texts nor resources, which are half of an asset and are
    /// then copied from the state before.
    func write(to writer: inout JSONWriter) {
        writer.append("{\"before\":")
        var texts: Range<Int>?
        if let before {
            writer.writeObject { writer in
                before.writeFacts(to: &writer, .full)
                let start = writer.count
                before.writeTexts(to: &writer, .full)
                texts = start..<writer.count
            }
        } else {
            writer.append("null")
        }
        writer.append(",\"after\":")
        if let before, let after, let texts, after.hasSameTexts(as: before) {
            writer.writeObject { writer in
                after.writeFacts(to: &writer, .full)
                writer.append(again: texts)
            }
        } else if let after {
            after.write(to: &writer)
        } else {
            writer.append("null")
        }
        writer.append("}")
    }
}

extension AssetResource {
    /// Writes the resource as JSON.
    public func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.append(",\"type\":", type.rawValue)
            writer.append(",\"digest\":", digest)
            writer.append(",\"size\":", size)
            if let offset { writer.append(",\"offset\":", offset) }
            writer.append(",\"contentType\":", contentType)
            if let originalFilename { writer.append(",\"originalFilename\":", originalFilename) }
            writer.append(",\"pixelWidth\":", pixelWidth)
            writer.append(",\"pixelHeight\":", pixelHeight)
            if let duration { writer.append(",\"duration\":", duration) }
            if let damage { writer.append(",\"damage\":", damage) }
            if !isLocallyAvailable { writer.append(",\"locallyAvailable\":false") }
        }
    }
}

extension Membership {
    /// Writes the membership as JSON.
    public func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.append(",\"collection\":", collection)
            writer.append(",\"key\":", key.text)
        }
    }
}

extension Location {
    /// Writes the location as JSON.
    public func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.append(",\"latitude\":", latitude)
            writer.append(",\"longitude\":", longitude)
            if let altitude { writer.append(",\"altitude\":", altitude) }
        }
    }
}

extension AssetMetadata {
    /// Writes the metadata as JSON.
    public func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            if let aperture { writer.append(",\"aperture\":", aperture) }
            if let exposureTime { writer.append(",\"exposureTime\":", exposureTime) }
            if let iso { writer.append(",\"iso\":", iso) }
            if let focalLength { writer.append(",\"focalLength\":", focalLength) }
            if let focalLengthIn35mm { writer.append(",\"focalLengthIn35mm\":", focalLengthIn35mm) }
            if let flash { writer.append(",\"flash\":", flash.rawValue) }
            if let imageDirection { writer.append(",\"imageDirection\":", imageDirection) }
            if let title { writer.append(",\"title\":", title) }
            if let headline { writer.append(",\"headline\":", headline) }
            if let copyright { writer.append(",\"copyright\":", copyright) }
            if let creator { writer.append(",\"creator\":", creator) }
            if let credit { writer.append(",\"credit\":", credit) }
            if let city { writer.append(",\"city\":", city) }
            if let state { writer.append(",\"state\":", state) }
            if let country { writer.append(",\"country\":", country) }
            if let label { writer.append(",\"label\":", label) }
            if let software { writer.append(",\"software\":", software) }
            if !hierarchicalKeywords.isEmpty { writer.append(",\"hierarchicalKeywords\":", hierarchicalKeywords) }
            guard !persons.isEmpty else { return }
            writer.append(",\"persons\":")
            writer.writeList(persons) { $0.write($1.json) }
        }
    }
}

extension JSONWriter {
    fileprivate mutating func append(_ name: StaticString, _ value: String) {
        append(name)
        write(value)
    }

    fileprivate mutating func append(_ name: StaticString, _ id: ObjectID) {
        append(name)
        write(id)
    }

    fileprivate mutating func append(_ name: StaticString, _ value: Int) {
        append(name)
        write(value)
    }

    fileprivate mutating func append(_ name: StaticString, _ value: Int64) {
        append(name)
        write(value)
    }

    fileprivate mutating func append(_ name: StaticString, _ value: Double) {
        append(name)
        write(value)
    }

    fileprivate mutating func append(_ name: StaticString, _ value: Bool) {
        append(name)
        write(value)
    }

    fileprivate mutating func append(_ name: StaticString, _ texts: [String]) {
        append(name)
        writeList(texts) { $0.write($1) }
    }

    fileprivate mutating func append(_ name: StaticString, _ revision: Revision) {
        append(name)
        append("\"r")
        write(revision.sequence)
        append("\"")
    }

    fileprivate mutating func append(_ name: StaticString, _ bits: some NamedBits) {
        append(name)
        // Nearly always empty.
        if bits.rawValue == 0 { append("[]") } else { writeList(bits.names) { $0.write($1) } }
    }

    fileprivate mutating func append(_ name: StaticString, date: Int64, _ projection: AssetProjection) {
        append(name)
        if projection.datesAreText { write(Timestamp.text(date)) } else { write(date) }
    }
}
