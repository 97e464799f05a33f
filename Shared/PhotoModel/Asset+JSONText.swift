public import JSONValue

/// A projection of an asset: which members its JSON text has, and how the dates are written.
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
    public var hasKeywords: Bool { has(.keywords) }
    public var hasMemberships: Bool { has(.memberships) }
    public var hasMetadata: Bool { has(.metadata) }
}

// MARK: - The JSON text of an asset

// The JSON text is written member by member: a page has a thousand assets and a record two of each, and a tree of values
// costs many times as much as the text. A test compares it with that of ``Asset/table``.

extension Asset {
    /// Writes the asset as JSON.
    public func write(to writer: inout JSONWriter, _ projection: AssetProjection = .full) {
        writer.writeObject { writer in
            writeFacts(to: &writer, projection)
            writeTexts(to: &writer, projection)
        }
    }

    fileprivate func writeFacts(to writer: inout JSONWriter, _ projection: AssetProjection) {
        if projection.has(.id) { writer.member(",\"id\":", id) }
        if projection.has(.revision) { writer.member(",\"revision\":", revision) }
        if projection.has(.contentRevision) { writer.member(",\"contentRevision\":", contentRevision) }
        if projection.has(.mediaType) { writer.member(",\"mediaType\":", mediaType.rawValue) }
        if projection.has(.mediaSubtypes) { writer.member(",\"mediaSubtypes\":", mediaSubtypes) }
        if projection.has(.playbackStyle) { writer.member(",\"playbackStyle\":", playbackStyle.rawValue) }
        if projection.has(.playbackVariation), playbackVariation != .none {
            writer.member(",\"playbackVariation\":", playbackVariation.rawValue)
        }
        if projection.has(.sourceType) { writer.member(",\"sourceType\":", sourceType.rawValue) }
        if projection.has(.contentType) { writer.member(",\"contentType\":", contentType) }
        if projection.has(.pixelWidth) { writer.member(",\"pixelWidth\":", pixelWidth) }
        if projection.has(.pixelHeight) { writer.member(",\"pixelHeight\":", pixelHeight) }
        if projection.has(.duration) { writer.member(",\"duration\":", duration) }
        if projection.has(.creationDate), let creationDate {
            writer.member(",\"creationDate\":", date: creationDate, projection)
        }
        if projection.has(.creationOffset), let creationOffset { writer.member(",\"creationOffset\":", creationOffset) }
        if projection.has(.hasOnlyModificationDate), hasOnlyModificationDate {
            writer.member(",\"hasOnlyModificationDate\":", true)
        }
        if projection.has(.isCreationOffsetDerived), isCreationOffsetDerived {
            writer.member(",\"isCreationOffsetDerived\":", true)
        }
        if projection.has(.modificationDate) {
            writer.member(",\"modificationDate\":", date: modificationDate, projection)
        }
        if projection.has(.contentModificationDate) {
            writer.member(",\"contentModificationDate\":", date: contentModificationDate, projection)
        }
        if projection.has(.addedDate) { writer.member(",\"addedDate\":", date: addedDate, projection) }
        if projection.has(.isRecentlyAdded), isRecentlyAdded { writer.member(",\"isRecentlyAdded\":", true) }
        if projection.has(.trashedDate), let trashedDate {
            writer.member(",\"trashedDate\":", date: trashedDate, projection)
        }
        if projection.has(.location), let location {
            writer.append(",\"location\":")
            location.write(to: &writer)
        }
        if projection.has(.isFavorite) { writer.member(",\"isFavorite\":", isFavorite) }
        if projection.has(.isHidden) { writer.member(",\"isHidden\":", isHidden) }
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
            writer.member(",\"burstIdentifier\":", burstIdentifier)
        }
        if projection.has(.representsBurst), representsBurst { writer.member(",\"representsBurst\":", true) }
        if projection.has(.burstSelectionTypes), burstSelectionTypes != [] {
            writer.member(",\"burstSelectionTypes\":", burstSelectionTypes)
        }
        if projection.has(.sharpness), let sharpness { writer.member(",\"sharpness\":", sharpness) }
        if projection.has(.rating), rating != 0 { writer.member(",\"rating\":", rating) }
        if projection.has(.caption), let caption { writer.member(",\"caption\":", caption) }
        if projection.has(.keywords), !keywords.isEmpty { writer.member(",\"keywords\":", keywords) }
        if projection.has(.originalFilename), let originalFilename {
            writer.member(",\"originalFilename\":", originalFilename)
        }
        if projection.has(.cameraMake), let cameraMake { writer.member(",\"cameraMake\":", cameraMake) }
        if projection.has(.cameraModel), let cameraModel { writer.member(",\"cameraModel\":", cameraModel) }
        if projection.has(.lensModel), let lensModel { writer.member(",\"lensModel\":", lensModel) }
        if projection.has(.metadata), let metadata {
            writer.append(",\"metadata\":")
            metadata.write(to: &writer)
        }
        if projection.has(.adjustmentFormatIdentifier), let adjustmentFormatIdentifier {
            writer.member(",\"adjustmentFormatIdentifier\":", adjustmentFormatIdentifier)
        }
        if projection.has(.adjustmentFormatVersion), let adjustmentFormatVersion {
            writer.member(",\"adjustmentFormatVersion\":", adjustmentFormatVersion)
        }
        if projection.has(.adjustmentDate), let adjustmentDate {
            writer.member(",\"adjustmentDate\":", date: adjustmentDate, projection)
        }
        if projection.has(.adjustmentsState), hasAdjustments {
            writer.member(",\"adjustmentsState\":", adjustmentsState.rawValue)
        }
        if projection.has(.originalResourceChoice), let choice = originalResourceChoice {
            writer.member(",\"originalResourceChoice\":", choice.rawValue)
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
            writer.member(",\"type\":", type.rawValue)
            writer.member(",\"digest\":", digest)
            writer.member(",\"size\":", size)
            if let offset { writer.member(",\"offset\":", offset) }
            writer.member(",\"contentType\":", contentType)
            if let originalFilename { writer.member(",\"originalFilename\":", originalFilename) }
            writer.member(",\"pixelWidth\":", pixelWidth)
            writer.member(",\"pixelHeight\":", pixelHeight)
            if let duration { writer.member(",\"duration\":", duration) }
            if let damage { writer.member(",\"damage\":", damage) }
            if !isLocallyAvailable { writer.append(",\"locallyAvailable\":false") }
        }
    }
}

extension Membership {
    /// Writes the membership as JSON.
    public func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.member(",\"collection\":", collection)
            writer.member(",\"key\":", key.text)
        }
    }
}

extension Location {
    /// Writes the place as JSON.
    public func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            writer.member(",\"latitude\":", latitude)
            writer.member(",\"longitude\":", longitude)
            if let altitude { writer.member(",\"altitude\":", altitude) }
        }
    }
}

extension AssetMetadata {
    /// Writes the metadata as JSON.
    public func write(to writer: inout JSONWriter) {
        writer.writeObject { writer in
            if let aperture { writer.member(",\"aperture\":", aperture) }
            if let exposureTime { writer.member(",\"exposureTime\":", exposureTime) }
            if let iso { writer.member(",\"iso\":", iso) }
            if let focalLength { writer.member(",\"focalLength\":", focalLength) }
            if let focalLengthIn35mm { writer.member(",\"focalLengthIn35mm\":", focalLengthIn35mm) }
            if let flash { writer.member(",\"flash\":", flash.rawValue) }
            if let imageDirection { writer.member(",\"imageDirection\":", imageDirection) }
            if let title { writer.member(",\"title\":", title) }
            if let headline { writer.member(",\"headline\":", headline) }
            if let copyright { writer.member(",\"copyright\":", copyright) }
            if let creator { writer.member(",\"creator\":", creator) }
            if let credit { writer.member(",\"credit\":", credit) }
            if let city { writer.member(",\"city\":", city) }
            if let state { writer.member(",\"state\":", state) }
            if let country { writer.member(",\"country\":", country) }
            if let label { writer.member(",\"label\":", label) }
            if let software { writer.member(",\"software\":", software) }
            if !hierarchicalKeywords.isEmpty { writer.member(",\"hierarchicalKeywords\":", hierarchicalKeywords) }
            guard !persons.isEmpty else { return }
            writer.append(",\"persons\":")
            writer.writeList(persons) { $0.write($1.json) }
        }
    }
}

extension JSONWriter {
    fileprivate mutating func member(_ name: StaticString, _ value: String) {
        append(name)
        write(value)
    }

    fileprivate mutating func member(_ name: StaticString, _ id: ObjectID) {
        append(name)
        write(id)
    }

    fileprivate mutating func member(_ name: StaticString, _ value: Int) {
        append(name)
        write(value)
    }

    fileprivate mutating func member(_ name: StaticString, _ value: Int64) {
        append(name)
        write(value)
    }

    fileprivate mutating func member(_ name: StaticString, _ value: Double) {
        append(name)
        write(value)
    }

    fileprivate mutating func member(_ name: StaticString, _ value: Bool) {
        append(name)
        write(value)
    }

    fileprivate mutating func member(_ name: StaticString, _ texts: [String]) {
        append(name)
        writeList(texts) { $0.write($1) }
    }

    fileprivate mutating func member(_ name: StaticString, _ revision: Revision) {
        append(name)
        append("\"r")
        write(revision.sequence)
        append("\"")
    }

    fileprivate mutating func member(_ name: StaticString, _ bits: some NamedBits) {
        append(name)
        // Nearly always empty.
        if bits.rawValue == 0 { append("[]") } else { writeList(bits.names) { $0.write($1) } }
    }

    fileprivate mutating func member(_ name: StaticString, date: Int64, _ projection: AssetProjection) {
        append(name)
        if projection.datesAreText { write(Timestamp.text(date)) } else { write(date) }
    }
}
