/// The members that the JSON text of an asset has, and how its dates are written.
public struct AssetTextForm: Sendable, Hashable {
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

    /// Every member, and dates in microseconds: the form of records and messages.
    public static let full = AssetTextForm()

    /// The form for identities with a limited grant, for which the user's albums do not exist.
    public var withoutMemberships: AssetTextForm {
        var form = self
        form.bits &= ~(1 << UInt64(Member.memberships.rawValue))
        return form
    }

    func has(_ member: Member) -> Bool { bits & (1 << UInt64(truncatingIfNeeded: member.rawValue)) != 0 }

    /// True if the text depends on the asset's resources.
    public var hasResources: Bool { has(.resources) || has(.originalResourceChoice) }
    public var hasKeywords: Bool { has(.keywords) }
    public var hasMemberships: Bool { has(.memberships) }
    public var hasMetadata: Bool { has(.metadata) }
}
