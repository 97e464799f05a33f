public import Basics
public import JSONValue
public import PhotoModel

/// `edits.publish`: an edit that a client publishes without waiting for its render.
///
/// It is a notification, pushed to the edits endpoint (PUSH to PULL), without a response. The publisher sends the same
/// message again until the edit is `accepted`, on the feed topic `edit.<id>` or in the result of ``EditsStatus``.
public struct PublishEdit: Sendable, Hashable, JSONTabled {
    public static let method = "edits.publish"
    /// Id of the edit, unique among the edits of its publisher.
    public var id: String
    /// The asset.
    public var asset: ObjectID
    /// The operations, in order. Give exactly one of adjustments, from, revert and step; none is needed with enhance.
    public var adjustments: AdjustmentList
    /// Options of ImageMagick's `convert`, which become operations after `adjustments`; nil for none.
    public var magick: MagickOptions?
    /// Id of the publisher's previous edit of the asset, after which this one is applied; nil for none.
    public var predecessor: String?
    /// The way the operations are combined with the current ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// The engine that renders the pixels; nil for the engine that the adjustments name, or else the editor's setting.
    public var engine: RenderEngine?
    /// Content revision that the asset must have, else the edit fails with conflict; nil to accept any.
    public var ifContentRevision: Revision?
    /// The asset whose operations are used instead of `adjustments`, read when this edit is applied; nil for none.
    public var source: ObjectID?
    /// True if the operations that `edits.suggest` returns are inserted before `adjustments`.
    public var enhances = false
    /// True if the edit reverts the asset to its original instead of applying `adjustments`.
    public var reverts = false
    /// The step of the asset's edit history that is restored instead of applying `adjustments`; 0 is the original, nil
    /// for none.
    public var step: Int?
    /// True if an original that is in remote storage may be downloaded first. If not, the edit fails with
    /// `network_access_required`.
    public var isNetworkAccessAllowed = false

    public init(
        id: String,
        asset: ObjectID,
        adjustments: AdjustmentList,
        after predecessor: String? = nil,
        mode: AdjustmentMode = .replace,
        ifContentRevision: Revision? = nil
    ) {
        self.id = id
        self.asset = asset
        self.adjustments = adjustments
        self.predecessor = predecessor
        self.mode = mode
        self.ifContentRevision = ifContentRevision
    }

    public static let table = JSONTable(
        method,
        "An edit to apply; a notification, pushed to the edits endpoint. Its outcome is published on the feed.",
        unknown: .refused,
        blank: PublishEdit(id: "", asset: .none, adjustments: AdjustmentList()),
        [
            .required("id", \.id, .publishedEditID, "Id of the edit, unique among the publisher's edits."),
            .asset(\.asset),
            .defaulted(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations, in order. Give exactly one of adjustments, from, revert and step; none is needed with "
                    + "enhance.",
                default: AdjustmentList(),
                isWritten: true
            ),
            .magick(\.magick),
            .optional("from", \.source, .id(.asset), "Use the operations of this asset, as edits.copy does."),
            .defaulted("enhance", \.enhances, .flag, "Insert the result of edits.suggest before them.", default: false),
            .defaulted("revert", \.reverts, .flag, "Discard all edits, as edits.revert does.", default: false),
            .optional("step", \.step, .count(0...Int.max), "Restore this step of the history, as edits.undo does."),
            .optional("after", \.predecessor, .publishedEditID, "Id of the publisher's edit to apply this one after."),
            .mode(\.mode),
            .engine(\.engine),
            .optional(
                "ifContentRevision",
                \.ifContentRevision,
                .revision,
                "Fails with conflict if the asset has another content revision."
            ),
            .networkAccess(\.isNetworkAccessAllowed),
        ]
    )

    /// Decodes a published edit and checks that it names exactly one thing to do.
    ///
    /// - Throws: the problem, with the path of the member
    public static func read(_ params: JSON) throws(JSONProblem) -> PublishEdit {
        let edit = try PublishEdit(json: params)
        let count = [edit.source != nil, edit.reverts, edit.step != nil].count(where: { $0 })
        guard count > 0 || edit.enhances || edit.magick != nil || params["adjustments"]?.isNull == false else {
            throw JSONProblem("missing; give adjustments, magick, from, revert, step or enhance", path: ["adjustments"])
        }
        guard count == 0 || count == 1 && edit.adjustments.operations.isEmpty && edit.magick == nil && !edit.enhances
        else {
            throw JSONProblem("give only one of adjustments, from, revert and step", path: ["adjustments"])
        }
        guard edit.predecessor != edit.id else {
            throw JSONProblem("an edit cannot be applied after itself", path: ["after"])
        }
        return edit
    }

    /// The only frame of the message.
    public var frame: Bytes {
        (["jsonrpc": "2.0", "method": .string(Self.method), "params": json] as JSON).bytes
    }

    /// The corresponding ``ApplyEdit`` request; only meaningful if the edit has `adjustments`.
    public var request: ApplyEdit {
        var edit = ApplyEdit(
            asset: asset,
            adjustments: adjustments,
            magick: magick,
            mode: mode,
            engine: engine,
            ifContentRevision: ifContentRevision
        )
        edit.isNetworkAccessAllowed = isNetworkAccessAllowed
        return edit
    }
}
