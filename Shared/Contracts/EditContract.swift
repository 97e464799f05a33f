public import JSONValue
public import PhotoModel

/// The way a list of adjustments is combined with the present list: replacing it, or appended to it.
public enum AdjustmentMode: String, Sendable, CaseIterable {
    case replace, append
}

extension JSONType where Value == AdjustmentList {
    /// The editor's list of operations, validated against its operation tables.
    static var adjustments: JSONType {
        JSONType(
            schema: AdjustmentList.schema,
            decode: { (json: JSON) throws(JSONProblem) in
                do throws(AdjustmentError) {
                    return try AdjustmentList(json: json)
                } catch {
                    throw JSONProblem(error.description)
                }
            },
            encode: { $0.json }
        )
    }
}

/// `edits.apply` for one asset: renders adjustments and commits them.
public struct ApplyEdit: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.apply"
    /// The asset.
    public var asset: ObjectID
    /// The operations, in order.
    public var adjustments: AdjustmentList
    /// The way the operations are combined with the present ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// Content revision that the asset must have, else the request is refused with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    /// Refused with conflict if the asset has another revision, which is in the error's data.
    public var ifRevision: Revision?
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; nil if the write is not idempotent.
    public var transaction: String?

    public init(
        asset: ObjectID,
        adjustments: AdjustmentList,
        mode: AdjustmentMode = .replace,
        ifContentRevision: Revision? = nil,
        ifRevision: Revision? = nil,
        client: String = "",
        transaction: String? = nil
    ) {
        self.asset = asset
        self.adjustments = adjustments
        self.mode = mode
        self.ifContentRevision = ifContentRevision
        self.ifRevision = ifRevision
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Renders adjustments of an asset and commits them in one transaction.",
        blank: ApplyEdit(asset: .none, adjustments: AdjustmentList(operations: [])),
        [
            .asset(\.asset),
            .required("adjustments", \.adjustments, .adjustments, "The operations, in order."),
            .mode(\.mode),
            .ifContentRevision(\.ifContentRevision),
            .optional(
                "ifRevision",
                \.ifRevision,
                .revision,
                "Refused with conflict if the asset has another revision, which is in the error's data."
            ),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}

/// The outcome of an edit of one asset.
public struct EditOutcome: JSONTabled {
    /// The asset.
    public var asset: ObjectID
    /// Token of the transaction.
    public var token: ChangeToken
    /// Sequence of the transaction.
    public var sequence: Int64
    /// True if anything changed.
    public var isChanged: Bool

    public init(asset: ObjectID, token: ChangeToken, isChanged: Bool) {
        self.asset = asset
        self.token = token
        self.sequence = token.sequence
        self.isChanged = isChanged
    }

    public static let table = JSONTable(
        "EditOutcome",
        "The transaction that committed an edit.",
        unknown: .ignored,
        blank: EditOutcome(asset: .none, token: .none, isChanged: false),
        [
            .asset(\.asset),
            .required("token", \.token, .token, "Token of the transaction."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "Sequence of the transaction."),
            .required("isChanged", \.isChanged, .flag, "Whether anything changed."),
        ]
    )
}

/// `edits.preview`: renders an edit at a size, without committing it.
public struct PreviewEdit: Request {
    public static let method = "edits.preview"
    /// The asset.
    public var asset: ObjectID
    /// The operations, in order.
    public var adjustments: AdjustmentList
    /// The longer side of the preview, in pixels.
    public var maximumSide: Int

    public init(asset: ObjectID, adjustments: AdjustmentList, maximumSide: Int = 1024) {
        self.asset = asset
        self.adjustments = adjustments
        self.maximumSide = maximumSide
    }

    public static let table = parameters(
        "Renders an edit without committing it.",
        blank: PreviewEdit(asset: .none, adjustments: AdjustmentList(operations: [])),
        [
            .asset(\.asset),
            .required("adjustments", \.adjustments, .adjustments, "The operations, in order."),
            .defaulted("maximumSide", \.maximumSide, .count(16...4096), "The longer side in pixels.", default: 1024),
        ]
    )

    public struct Result: JSONTabled {
        /// Media type of the bytes.
        public var mimeType: String
        /// Width in pixels.
        public var pixelWidth: Int
        /// Height in pixels.
        public var pixelHeight: Int
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64

        public init(mimeType: String, pixelWidth: Int, pixelHeight: Int, sequence: Int64) {
            self.mimeType = mimeType
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
            self.sequence = sequence
        }

        public static let table = JSONTable(
            "Preview",
            "Description of the attached image.",
            unknown: .ignored,
            blank: Result(mimeType: "", pixelWidth: 0, pixelHeight: 0, sequence: 0),
            [
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Width in pixels."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Height in pixels."),
                .sequence(\.sequence),
            ]
        )
    }
}

/// `edits.revert`: reverts an asset to its original (S-92).
public struct RevertEdit: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.revert"
    /// The asset.
    public var asset: ObjectID
    /// Content revision that the asset must have, else the request is refused with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    public var base: OriginalChoice?
    /// Name of the client program.
    public var client: String
    /// Transaction id, chosen by the client; nil if the write is not idempotent.
    public var transaction: String?

    public init(
        asset: ObjectID,
        ifContentRevision: Revision? = nil,
        base: OriginalChoice? = nil,
        client: String = "",
        transaction: String? = nil
    ) {
        self.asset = asset
        self.ifContentRevision = ifContentRevision
        self.base = base
        self.client = client
        self.transaction = transaction
    }

    public static let table = parameters(
        "Discards all edits of an asset.",
        blank: RevertEdit(asset: .none),
        [
            .asset(\.asset),
            .ifContentRevision(\.ifContentRevision),
            .shownOriginal(\.base),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}

/// All requests of the editor.
public enum EditorRequest: ServiceRequest {
    case begin(BeginEditing)
    case apply(ApplyEdits)
    case preview(PreviewEdit)
    case revert(RevertEdit)
    case copy(CopyEdits)
    case compare(CompareEdit)
    case suggest(SuggestEdit)
    case history(EditHistory)
    case undo(UndoEdits)
    case discover(Discover)
    case health(Health)
    case figures(MetricsRequest)

    public static let table = MethodTable<EditorRequest>([
        .method(
            begin,
            attachments: "Response: adjustment data, input and display-size image, numbered as in the result."
        ),
        .method(apply, limits: .large),
        .method(preview, attachments: "Response: the image.", limits: .large),
        .method(revert),
        .method(copy, limits: .large),
        .method(suggest),
        .method(history),
        .method(undo),
        .method(compare, attachments: "Response: the image."),
        .method(discover),
        .method(health),
        .method(figures),
    ])

    /// The notifications that are pushed to the edits endpoint.
    public static let notifications = [
        MethodDescription(notification: PublishEdit.method, PublishEdit.self, to: "edits")
    ]
}
