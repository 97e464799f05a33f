public import JSONValue
public import PhotoModel

/// `edits.livePhoto`: renders adjustments of a Live Photo, of its still and of each frame of its video, and commits
/// both: `saveLivePhoto` of `PHLivePhotoEditingContext` (T-48).
///
/// It cancels the running saves of the same Live Photo by the same client, and that client's previews of it with a
/// video. These end with `user_cancelled`.
public struct EditLivePhoto: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.livePhoto"
    /// The Live Photo or motion photo.
    public var asset: ObjectID
    /// The operations, in order; only those that videos have.
    public var adjustments: AdjustmentList
    /// The way the operations are combined with the current ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// The volume of the video's sound, 0...1; nil for that of the list, or else 1.
    public var audioVolume: Double?
    /// The time in the video, in microseconds, whose frame becomes the still; nil for that of the list, or else the
    /// still as taken.
    public var keyFrame: Int64?
    /// Content revision that the asset must have, else the request is refused with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    /// True if a still and a video that are in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; nil if the write is not idempotent.
    public var transaction: String?

    public init(
        asset: ObjectID,
        adjustments: AdjustmentList = AdjustmentList(),
        mode: AdjustmentMode = .replace,
        audioVolume: Double? = nil,
        keyFrame: Int64? = nil,
        ifContentRevision: Revision? = nil,
        client: String = "",
        transaction: String? = nil
    ) {
        self.asset = asset
        self.adjustments = adjustments
        self.mode = mode
        self.audioVolume = audioVolume
        self.keyFrame = keyFrame
        self.ifContentRevision = ifContentRevision
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Renders adjustments of a Live Photo, of its still and of each frame of its video, and commits both. A second "
            + "one of the same client cancels the first, which ends with user_cancelled.",
        blank: EditLivePhoto(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations, in order; only those that videos have.",
                default: AdjustmentList()
            ),
            .mode(\.mode),
            .optional(
                "audioVolume",
                \.audioVolume,
                .number(0...1),
                "The volume of the video's sound; 0 removes it. Default: that of the list, else 1."
            ),
            .optional(
                "keyFrame",
                \.keyFrame,
                .integer(0...LivePhotoAdjustment.maxKeyFrame),
                "The time in the video, in microseconds, whose frame becomes the still. Default: that of the list, "
                    + "else the still as taken."
            ),
            .ifContentRevision(\.ifContentRevision),
            .networkAccess(\.isNetworkAccessAllowed),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )

    /// The equivalent request for `edits.apply`.
    public var edit: ApplyEdit {
        var list = adjustments
        list.livePhoto = LivePhotoAdjustment(audioVolume: audioVolume, keyFrame: keyFrame).merged(onto: list.livePhoto)
        var edit = ApplyEdit(
            asset: asset,
            adjustments: list,
            mode: mode,
            ifContentRevision: ifContentRevision,
            client: client,
            transaction: transaction
        )
        edit.isNetworkAccessAllowed = isNetworkAccessAllowed
        return edit
    }
}
