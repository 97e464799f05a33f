public import JSONValue
public import PhotoModel

/// Adjustment data that a program can read: a format, and the versions of it.
public struct HandledFormat: Sendable, Hashable, JSONTabled {
    public var formatIdentifier: String
    /// Exactly this version; nil: see the range.
    public var formatVersion: String?
    /// The lowest version, inclusive; nil: any.
    public var minimumVersion: String?
    /// The highest version, inclusive; nil: any.
    public var maximumVersion: String?

    public init(
        formatIdentifier: String,
        formatVersion: String? = nil,
        minimumVersion: String? = nil,
        maximumVersion: String? = nil
    ) {
        self.formatIdentifier = formatIdentifier
        self.formatVersion = formatVersion
        self.minimumVersion = minimumVersion
        self.maximumVersion = maximumVersion
    }

    public static let table = JSONTable(
        "HandledFormat",
        "Adjustment data that a program can read. Versions are compared number by number: 1.10 is above 1.9.",
        unknown: .refused,
        blank: HandledFormat(formatIdentifier: ""),
        [
            .required("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Reverse DNS name of the format."),
            .optional("formatVersion", \.formatVersion, .text(maxBytes: 64), "Exactly this version."),
            .optional("minimumVersion", \.minimumVersion, .text(maxBytes: 64), "The lowest version; absent: any."),
            .optional("maximumVersion", \.maximumVersion, .text(maxBytes: 64), "The highest version; absent: any."),
        ]
    )

    /// Whether adjustment data of this format and version is meant.
    public func includes(_ identifier: String, _ version: String) -> Bool {
        guard identifier == formatIdentifier else { return false }
        if let formatVersion { return formatVersion == version }
        if let minimumVersion, Self.isBelow(version, minimumVersion) { return false }
        if let maximumVersion, Self.isBelow(maximumVersion, version) { return false }
        return true
    }

    /// Part by part at the points: numbers by value, anything else by its bytes.
    static func isBelow(_ left: String, _ right: String) -> Bool {
        let (lefts, rights) = (left.split(separator: "."), right.split(separator: "."))
        for index in 0..<max(lefts.count, rights.count) {
            let (a, b) = (index < lefts.count ? lefts[index] : "0", index < rights.count ? rights[index] : "0")
            if a == b { continue }
            guard let a = Int64(a), let b = Int64(b) else {
                return a.utf8.lexicographicallyPrecedes(b.utf8)
            }
            if a != b { return a < b }
        }
        return false
    }
}

/// `editing.begin`: what a program needs to edit an asset's pixels itself (spec S-86, section 9).
public struct BeginEditing: Request {
    public static let method = "editing.begin"
    public var asset: ObjectID
    public var canHandle: [HandledFormat]
    public var originalChoice: OriginalChoice?
    /// The longer side of the display-size image, in pixels.
    public var displaySize: Int
    public var skipsDisplaySizeImage: Bool
    public var skipsInput: Bool

    public init(
        asset: ObjectID,
        canHandle: [HandledFormat] = [],
        originalChoice: OriginalChoice? = nil,
        displaySize: Int = 1024,
        skipsDisplaySizeImage: Bool = false,
        skipsInput: Bool = false
    ) {
        self.asset = asset
        self.canHandle = canHandle
        self.originalChoice = originalChoice
        self.displaySize = displaySize
        self.skipsDisplaySizeImage = skipsDisplaySizeImage
        self.skipsInput = skipsInput
    }

    public static let table = parameters(
        "The right version of an asset for an editor, its adjustment data, and a token for asset.edit.",
        blank: BeginEditing(asset: .none),
        [
            .asset(\.asset),
            .defaulted(
                "canHandle",
                \.canHandle,
                .list(of: .object(HandledFormat.self), limit: 100),
                "Adjustment data that the editor can read.",
                default: []
            ),
            .optional(
                "originalChoice",
                \.originalChoice,
                .name(OriginalChoice.self),
                "Which of a RAW and a compressed original."
            ),
            .defaulted(
                "displaySize",
                \.displaySize,
                .count(16...4096),
                "Pixels of the longer side of the display-size image.",
                default: 1024
            ),
            .defaulted(
                "skipsDisplaySizeImage",
                \.skipsDisplaySizeImage,
                .flag,
                "Leaves the display-size image out.",
                default: false
            ),
            .defaulted(
                "skipsInput",
                \.skipsInput,
                .flag,
                "Leaves the input's bytes out of the answer.",
                default: false
            ),
        ]
    )

    public struct Result: JSONTabled {
        public var version: EditBase
        public var resource: AssetResource
        public var orientation: Int
        public var inputToken: EditInputToken
        public var contentRevision: Revision
        public var previousAvailable: Bool
        public var formatIdentifier: String?
        public var formatVersion: String?
        /// Numbers of the attachments; nil where there is none.
        public var adjustmentData: Int?
        public var input: Int?
        public var displaySizeImage: Int?
        public var supportedRenderTypes: [String]
        public var sequence: Int64

        public init(
            version: EditBase,
            resource: AssetResource,
            inputToken: EditInputToken,
            contentRevision: Revision,
            previousAvailable: Bool,
            supportedRenderTypes: [String],
            sequence: Int64
        ) {
            self.version = version
            self.resource = resource
            self.orientation = 1
            self.inputToken = inputToken
            self.contentRevision = contentRevision
            self.previousAvailable = previousAvailable
            self.supportedRenderTypes = supportedRenderTypes
            self.sequence = sequence
        }

        public static let table = JSONTable(
            "EditingInput",
            "What an edit begins with.",
            unknown: .ignored,
            blank: Result(
                version: .original,
                resource: AssetResource(type: .photo, digest: "", size: 0, contentType: ""),
                inputToken: EditInputToken(asset: .none, contentRevision: Revision(0), base: .original, digest: ""),
                contentRevision: Revision(0),
                previousAvailable: false,
                supportedRenderTypes: [],
                sequence: 0
            ),
            [
                .required("version", \.version, .name(EditBase.self), "Which version the input is."),
                .required("resource", \.resource, .object(AssetResource.self), "Its bytes, for resource.read."),
                .required("orientation", \.orientation, .count(1...8), "EXIF orientation of the input's pixels."),
                .required("inputToken", \.inputToken, .editInput, "To be given to asset.edit as inputToken."),
                .required("contentRevision", \.contentRevision, .revision, "The pixels that the edit replaces."),
                .required(
                    "previousAvailable",
                    \.previousAvailable,
                    .flag,
                    "Whether the last edit can be resumed by who reads its adjustment data; not of a video."
                ),
                .optional("formatIdentifier", \.formatIdentifier, .text(maxBytes: 256), "Of the adjustment data."),
                .optional("formatVersion", \.formatVersion, .text(maxBytes: 64), "Of the adjustment data."),
                .optional("adjustmentData", \.adjustmentData, .count(0...2), "Attachment with the adjustment data."),
                .optional(
                    "input",
                    \.input,
                    .count(0...2),
                    "Attachment with the input; absent where it is large: read the resource."
                ),
                .optional(
                    "displaySizeImage",
                    \.displaySizeImage,
                    .count(0...2),
                    "Attachment: the input, upright, small."
                ),
                .required(
                    "supportedRenderTypes",
                    \.supportedRenderTypes,
                    .list(of: .text(maxBytes: 128), limit: 16),
                    "Types that asset.edit takes as render, the usual one first."
                ),
                .sequence(\.sequence),
            ]
        )
    }
}
