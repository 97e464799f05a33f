public import JSONValue
public import PhotoModel

/// `editing.begin`: the input for a client that edits an asset's pixels itself (S-86).
public struct BeginEditing: Request {
    public static let method = "editing.begin"
    /// The asset.
    public var asset: ObjectID
    /// Adjustment data formats that the editor can read.
    public var canHandle: [HandledFormat]
    /// The RAW or the compressed original as the input, if the asset has both; with the adjustment data if it belongs
    /// to that original. Nil for the input that the editor chooses.
    public var originalChoice: OriginalChoice?
    /// The longer side of the display-size image, in pixels, 16...4096.
    public var displaySize: Int
    /// True to omit the display-size image.
    public var skipsDisplaySizeImage: Bool
    /// True to omit the bytes of the input.
    public var skipsInput: Bool
    /// True if an input that is in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        asset: ObjectID,
        canHandle: [HandledFormat] = [],
        originalChoice: OriginalChoice? = nil,
        displaySize: Int = 1024,
        skipsDisplaySizeImage: Bool = false,
        skipsInput: Bool = false,
        atLeast: ChangeToken? = nil
    ) {
        self.asset = asset
        self.canHandle = canHandle
        self.originalChoice = originalChoice
        self.displaySize = displaySize
        self.skipsDisplaySizeImage = skipsDisplaySizeImage
        self.skipsInput = skipsInput
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "The input for editing an asset: image version, adjustment data, and a token for asset.edit.",
        blank: BeginEditing(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "canHandle",
                \.canHandle,
                .list(of: .object(HandledFormat.self), limit: 100),
                "Adjustment data formats that the editor can read.",
                default: []
            ),
            .optional(
                "originalChoice",
                \.originalChoice,
                .name(OriginalChoice.self),
                "The RAW or the compressed original as the input, if the asset has both; with the adjustment data if "
                    + "it belongs to that original."
            ),
            .defaulted(
                "displaySize",
                \.displaySize,
                .count(16...4096),
                "The longer side of the display-size image, in pixels.",
                default: 1024
            ),
            .defaulted(
                "skipsDisplaySizeImage",
                \.skipsDisplaySizeImage,
                .flag,
                "Omit the display-size image.",
                default: false
            ),
            .defaulted(
                "skipsInput",
                \.skipsInput,
                .flag,
                "Omit the bytes of the input.",
                default: false
            ),
            .networkAccess(\.isNetworkAccessAllowed),
            .atLeast(\.atLeast),
        ]
    )

    /// The input of an edit.
    public struct Result: JSONTabled {
        /// The version of the asset that the input is.
        public var version: EditBase
        /// The input, for resource.read.
        public var resource: AssetResource
        /// The video of a Live Photo that belongs to the input, for resource.read; nil if there is none.
        public var pairedVideo: AssetResource?
        /// EXIF orientation of the input's pixels.
        public var orientation: Int
        /// The inputToken for asset.edit.
        public var inputToken: EditInputToken
        /// Content revision that the edit replaces.
        public var contentRevision: Revision
        /// True if an editor that reads the adjustment data can resume the last edit; false for videos.
        public var isPreviousAvailable: Bool
        /// Adjustment data format.
        public var formatIdentifier: String?
        /// Adjustment data version.
        public var formatVersion: String?
        /// Number of the attachment with the adjustment data; nil if there is none.
        public var adjustmentData: Int?
        /// Number of the attachment with the input; nil if it was skipped or is too large.
        public var input: Int?
        /// Number of the attachment with the display-size image; nil if it was skipped.
        public var displaySizeImage: Int?
        /// Content types that asset.edit accepts as a render, the preferred one first.
        public var supportedRenderTypes: [String]
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64

        public init(
            version: EditBase,
            resource: AssetResource,
            inputToken: EditInputToken,
            contentRevision: Revision,
            isPreviousAvailable: Bool,
            supportedRenderTypes: [String],
            sequence: Int64
        ) {
            self.version = version
            self.resource = resource
            self.orientation = 1
            self.inputToken = inputToken
            self.contentRevision = contentRevision
            self.isPreviousAvailable = isPreviousAvailable
            self.supportedRenderTypes = supportedRenderTypes
            self.sequence = sequence
        }

        public static let table = JSONTable(
            "EditingInput",
            "The input of an edit.",
            unknown: .ignored,
            blank: Result(
                version: .original,
                resource: AssetResource(type: .photo, digest: "", size: 0, contentType: ""),
                inputToken: EditInputToken(asset: .none, contentRevision: Revision(0), base: .original, digest: ""),
                contentRevision: Revision(0),
                isPreviousAvailable: false,
                supportedRenderTypes: [],
                sequence: 0
            ),
            [
                .required("version", \.version, .name(EditBase.self), "The version that the input is."),
                .required("resource", \.resource, .object(AssetResource.self), "The input, for resource.read."),
                .optional(
                    "pairedVideo",
                    \.pairedVideo,
                    .object(AssetResource.self),
                    "The video of a Live Photo that belongs to the input, for resource.read."
                ),
                .required("orientation", \.orientation, .count(1...8), "EXIF orientation of the input's pixels."),
                .required("inputToken", \.inputToken, .editInput, "The inputToken for asset.edit."),
                .required("contentRevision", \.contentRevision, .revision, "Content revision that the edit replaces."),
                .required(
                    "previousAvailable",
                    \.isPreviousAvailable,
                    .flag,
                    "True if an editor that reads the adjustment data can resume the last edit; false for videos."
                ),
                .optional("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Adjustment data format."),
                .optional("formatVersion", \.formatVersion, .text(maxBytes: 64), "Adjustment data version."),
                .optional("adjustmentData", \.adjustmentData, .count(0...2), "Number of its attachment."),
                .optional(
                    "input",
                    \.input,
                    .count(0...2),
                    "Number of the input's attachment; absent if it is large: read the resource."
                ),
                .optional(
                    "displaySizeImage",
                    \.displaySizeImage,
                    .count(0...2),
                    "Number of the attachment with the input at display size, upright."
                ),
                .required(
                    "supportedRenderTypes",
                    \.supportedRenderTypes,
                    .list(of: .text(maxBytes: 128), limit: 16),
                    "Content types that asset.edit accepts as a render, the preferred one first."
                ),
                .sequence(\.sequence),
            ]
        )
    }
}
