public import JSONValue

/// Asset properties to set. Absent members stay unchanged; null clears what can be absent (S-76, T-27).
public struct AssetPatch: Sendable, Hashable, JSONTabled {
    public var isFavorite: Bool?
    public var isHidden: Bool?
    /// Microseconds since 1970, in ``dates``.
    public var creationDate: Int64??
    /// Seconds east of UTC.
    public var creationOffset: Int??
    public var location: Location??
    public var caption: String??
    /// 0 (unrated) to 5.
    public var rating: Int?
    /// The complete list of keywords.
    public var keywords: [String]?
    /// True if the user picked it from its burst (S-38).
    public var isUserPick: Bool?
    /// True makes the asset the representative of its burst in place of the previous one.
    public var representsBurst: Bool?
    public var playbackVariation: PlaybackVariation?

    public init(
        isFavorite: Bool? = nil,
        isHidden: Bool? = nil,
        creationDate: Int64?? = .none,
        creationOffset: Int?? = .none,
        location: Location?? = .none,
        caption: String?? = .none,
        rating: Int? = nil,
        keywords: [String]? = nil,
        isUserPick: Bool? = nil,
        representsBurst: Bool? = nil,
        playbackVariation: PlaybackVariation? = nil
    ) {
        self.isUserPick = isUserPick
        self.representsBurst = representsBurst
        self.playbackVariation = playbackVariation
        self.isFavorite = isFavorite
        self.isHidden = isHidden
        self.creationDate = creationDate
        self.creationOffset = creationOffset
        self.location = location
        self.caption = caption
        self.rating = rating
        self.keywords = keywords
    }

    /// The years 0001 to 9999 in microseconds.
    public static let dates: ClosedRange<Int64> = -62_135_596_800_000_000...253_402_300_799_999_999

    public static let table = JSONTable(
        "AssetPatch",
        "Properties to set. Absent members stay unchanged; null clears where it is allowed, and is refused elsewhere.",
        unknown: .refused,
        blank: AssetPatch(),
        [
            .change("isFavorite", \.isFavorite, .flag, "Marked as a favourite."),
            .change("isHidden", \.isHidden, .flag, "Excluded from fetches by default."),
            .patch("creationDate", \.creationDate, .date(dates), "When it was taken: RFC 3339 text or microseconds."),
            .patch("creationOffset", \.creationOffset, .count(-86_400...86_400), "Seconds east of UTC."),
            .patch("location", \.location, .object(Location.self), "Where it was taken."),
            .patch("caption", \.caption, .text(maxBytes: TextLimit.caption), "The caption; empty clears."),
            .change("rating", \.rating, .count(0...5), "Stars."),
            .change(
                "keywords",
                \.keywords,
                .list(of: .text(maxBytes: TextLimit.keyword), limit: 1024),
                "The complete list of keywords."
            ),
            .change("isUserPick", \.isUserPick, .flag, "Picked by the user from its burst."),
            .change(
                "representsBurst",
                \.representsBurst,
                .flag,
                "True: it represents its burst from now on. The current representative stays if the frame is in the "
                    + "trash, or is hidden and others are not."
            ),
            .change(
                "playbackVariation",
                \.playbackVariation,
                .name(PlaybackVariation.self),
                "Effect of a Live Photo."
            ),
        ]
    )
}
