public import JSONValue
public import PhotoModel

/// How a list of adjustments meets the one that is there.
public enum AdjustmentMode: String, Sendable, CaseIterable {
    case replace, append
}

extension JSONType where Value == AdjustmentList {
    /// The editor's list of operations, checked against its own tables.
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

/// `edits.apply`: renders adjustments of an asset and commits them (DESIGN 3.5).
public struct ApplyEdit: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.apply"
    public var asset: ObjectID
    public var adjustments: AdjustmentList
    public var mode: AdjustmentMode
    public var ifContentRevision: Revision?
    public var ifRevision: Revision?
    public var client: String
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
        "Renders adjustments of an asset and commits them as one change.",
        blank: ApplyEdit(asset: .none, adjustments: AdjustmentList(operations: [])),
        [
            .asset(\.asset),
            .required("adjustments", \.adjustments, .adjustments, "The operations, in their order."),
            .mode(\.mode),
            .ifContentRevision(\.ifContentRevision),
            .optional(
                "ifRevision",
                \.ifRevision,
                .revision,
                "Refused as conflict when it has another revision; the error's data names that."
            ),
            .client(\.client),
            .transaction(\.transaction),
        ]
    )
}

/// The state of an asset after an edit.
public struct EditOutcome: JSONTabled {
    public var asset: ObjectID
    public var token: ChangeToken
    public var sequence: Int64
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
            .required("token", \.token, .token, "The moment after the transaction."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "Its sequence."),
            .required("isChanged", \.isChanged, .flag, "False where there was nothing to change."),
        ]
    )
}

/// `edits.preview`: how an edit would look, at a size.
public struct PreviewEdit: Request {
    public static let method = "edits.preview"
    public var asset: ObjectID
    public var adjustments: AdjustmentList
    /// The longer side of the preview, in pixels.
    public var maximumSide: Int

    public init(asset: ObjectID, adjustments: AdjustmentList, maximumSide: Int = 1024) {
        self.asset = asset
        self.adjustments = adjustments
        self.maximumSide = maximumSide
    }

    public static let table = parameters(
        "How an edit would look; nothing is committed.",
        blank: PreviewEdit(asset: .none, adjustments: AdjustmentList(operations: [])),
        [
            .asset(\.asset),
            .required("adjustments", \.adjustments, .adjustments, "The operations, in their order."),
            .defaulted("maximumSide", \.maximumSide, .count(16...4096), "Pixels of the longer side.", default: 1024),
        ]
    )

    public struct Result: JSONTabled {
        public var mimeType: String
        public var pixelWidth: Int
        public var pixelHeight: Int
        public var sequence: Int64

        public init(mimeType: String, pixelWidth: Int, pixelHeight: Int, sequence: Int64) {
            self.mimeType = mimeType
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
            self.sequence = sequence
        }

        public static let table = JSONTable(
            "Preview",
            "What the attachment holds.",
            unknown: .ignored,
            blank: Result(mimeType: "", pixelWidth: 0, pixelHeight: 0, sequence: 0),
            [
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Width."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Height."),
                .sequence(\.sequence),
            ]
        )
    }
}

/// `edits.revert`: back to the original (spec S-92).
public struct RevertEdit: Request {
    public typealias Result = EditOutcome
    public static let method = "edits.revert"
    public var asset: ObjectID
    public var ifContentRevision: Revision?
    public var base: OriginalChoice?
    public var client: String
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

/// Every request of the editor.
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
    case figures(Figures)

    public static let table = MethodTable<EditorRequest>([
        .method(
            begin,
            attachments: "Reply: adjustment data, input and display-size image, at the numbers that the result names."
        ),
        .method(apply, limits: .large),
        .method(preview, attachments: "Reply: the image.", limits: .large),
        .method(revert),
        .method(copy, limits: .large),
        .method(suggest),
        .method(history),
        .method(undo),
        .method(compare, attachments: "Reply: the image."),
        .method(discover),
        .method(health),
        .method(figures),
    ])

    /// What is pushed to the edits endpoint instead.
    public static let notifications = [
        MethodDescription(notification: PublishEdit.method, PublishEdit.self, to: "edits")
    ]
}
