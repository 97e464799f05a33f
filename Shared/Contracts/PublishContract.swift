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
    /// Id of the publisher's previous edit of the asset, after which this one is applied; nil for none.
    public var predecessor: String?
    /// The way the operations are combined with the present ones: replacing them, or appended to them.
    public var mode: AdjustmentMode
    /// Fails with conflict if the asset has another content revision.
    public var ifContentRevision: Revision?
    /// The asset whose operations are used instead of `adjustments`, read when this edit is applied.
    public var source: ObjectID?
    /// True if the operations that `edits.suggest` returns are inserted before `adjustments`.
    public var enhance = false
    /// True if the edit reverts the asset to its original instead of applying `adjustments`.
    public var revert = false
    /// The step of the asset's edit history that is restored instead of applying `adjustments`; 0 is the original.
    public var step: Int?

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
            .required("id", \.id, .editName, "Id of the edit, unique among the publisher's edits."),
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
            .optional("from", \.source, .id(.asset), "Use the operations of this asset, as edits.copy does."),
            .defaulted("enhance", \.enhance, .flag, "Insert the result of edits.suggest before them.", default: false),
            .defaulted("revert", \.revert, .flag, "Discard all edits, as edits.revert does.", default: false),
            .optional("step", \.step, .count(0...Int.max), "Restore this step of the history, as edits.undo does."),
            .optional("after", \.predecessor, .editName, "Id of the publisher's edit to apply this one after."),
            .mode(\.mode),
            .optional(
                "ifContentRevision",
                \.ifContentRevision,
                .revision,
                "Fails with conflict if the asset has another content revision."
            ),
        ]
    )

    /// Decodes a published edit and checks that it names exactly one thing to do.
    ///
    /// - Throws: the problem, with the path of the member
    public static func read(_ params: JSON) throws(JSONProblem) -> PublishEdit {
        let edit = try PublishEdit(json: params)
        let places = [edit.source != nil, edit.revert, edit.step != nil].count(where: { $0 })
        guard places > 0 || edit.enhance || params["adjustments"] != nil else {
            throw JSONProblem("missing; give adjustments, from, revert, step or enhance", path: ["adjustments"])
        }
        guard places == 0 || places == 1 && edit.adjustments.operations.isEmpty && !edit.enhance else {
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
        ApplyEdit(asset: asset, adjustments: adjustments, mode: mode, ifContentRevision: ifContentRevision)
    }
}

/// A decoded message to the edits endpoint.
public enum PublishedMessage: Sendable {
    /// An edit, with its parameters as received.
    case edit(PublishEdit, params: JSON)
    /// An invalid edit that has an id and an asset; it is recorded as failed.
    case broken(MalformedEdit)
    /// A message without a valid id and asset; its publisher cannot be informed.
    case unreadable(RPCError)

    /// An invalid edit whose error can be recorded for its publisher.
    public struct MalformedEdit: Sendable {
        public let id: String
        public let asset: ObjectID
        public let predecessor: String?
        public let params: JSON
        public let error: RPCError
    }

    /// Decodes the frames of a message.
    public init(frames: [Bytes], limits: JSONLimits = JSONLimits()) {
        guard let frame = frames.first else {
            self = .unreadable(.invalidRequest("the message has no frame"))
            return
        }
        let json: JSON
        do throws(JSONError) { json = try JSON(parsing: frame, limits: limits) } catch {
            self = .unreadable(.parseError("the first frame is not JSON: \(error)"))
            return
        }
        let params = json["params"] ?? .null
        do throws(RPCError) {
            try Self.checkEnvelope(json, frames, params)
            do throws(JSONProblem) {
                self = .edit(try PublishEdit.read(params), params: params)
            } catch {
                throw ErrorCode.invalidParams.error("\(PublishEdit.method): \(error.description)")
            }
        } catch {
            self = Self.broken(params, error)
        }
    }

    private static func checkEnvelope(_ json: JSON, _ frames: [Bytes], _ params: JSON) throws(RPCError) {
        guard json["jsonrpc"]?.stringValue == "2.0", json["id"] == nil,
            json["method"]?.stringValue == PublishEdit.method
        else {
            throw .invalidRequest(
                "an edit is a notification: {\"jsonrpc\": \"2.0\", \"method\": \"\(PublishEdit.method)\", \"params\": {…}}"
            )
        }
        guard frames.count == 1 else { throw .invalidRequest("an edit has one frame, not \(frames.count)") }
        let bytes = params.bytes.count
        guard bytes <= ChangeRequest.AcceptEdit.maxContentBytes else {
            throw ErrorCode.limitExceeded.error(
                "an edit has at most \(ChangeRequest.AcceptEdit.maxContentBytes) bytes, this one has \(bytes)"
            )
        }
    }

    private static func broken(_ params: JSON, _ error: RPCError) -> PublishedMessage {
        guard let name = params["id"], let id = try? JSONType.editName.decode(name),
            let asset = params["asset"]?.stringValue.flatMap({ ObjectID($0) }), asset.kind == .asset
        else { return .unreadable(error) }
        let predecessor = params["after"].flatMap { try? JSONType.editName.decode($0) }
        return .broken(MalformedEdit(id: id, asset: asset, predecessor: predecessor, params: params, error: error))
    }
}

/// `edits.status` of the catalog: the states of published edits.
///
/// For publishers that missed an outcome on the feed; sending a finished edit again makes no new record.
public struct EditsStatus: Request {
    public static let method = "edits.status"
    /// Ids of the edits.
    public var ids: [String]
    /// The publisher; accepted from services only.
    public var onBehalfOf: String?

    public static let maxIDs = 1000

    public init(ids: [String], onBehalfOf: String? = nil) {
        self.ids = ids
        self.onBehalfOf = onBehalfOf
    }

    public static let table = parameters(
        "The states of edits that this identity has published.",
        blank: EditsStatus(ids: []),
        [
            .required("ids", \.ids, .list(of: .editName, limit: maxIDs), "Ids of the edits."),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "The publisher; for services only."),
        ]
    )

    public struct Result: JSONTabled {
        /// The known edits, in the order of the request.
        public var edits: [EditStatus]
        /// Ids that never arrived, or whose edits finished before the retained history.
        public var unknown: [String]

        public init(edits: [EditStatus], unknown: [String]) {
            self.edits = edits
            self.unknown = unknown
        }

        public static let table = JSONTable(
            "EditsStatus",
            "The states of published edits.",
            unknown: .ignored,
            blank: Result(edits: [], unknown: []),
            [
                .required("edits", \.edits, .list(of: .object(EditStatus.self), limit: maxIDs), "The known edits."),
                .required(
                    "unknown",
                    \.unknown,
                    .list(of: .text(maxBytes: PublishedEdit.maxNameBytes), limit: maxIDs),
                    "Ids that never arrived, or that finished before the retained history: publish them again."
                ),
            ]
        )
    }
}

/// The state of a published edit, and the transaction that recorded it.
public struct EditStatus: Sendable, Hashable, JSONTabled {
    public var edit: PublishedEdit
    /// The transaction that recorded the state.
    public var sequence: Int64
    /// Digest of the edit's content, computed as ``PublishedEdit/refusedDigest``.
    public var digest: String

    public init(edit: PublishedEdit, sequence: Int64, digest: String) {
        self.edit = edit
        self.sequence = sequence
        self.digest = digest
    }

    public static let table = JSONTable(
        "EditStatus",
        "The state of a published edit, and the transaction that recorded it.",
        unknown: .ignored,
        blank: EditStatus(edit: PublishedEdit(id: "", asset: .none, state: .accepted), sequence: 0, digest: ""),
        [
            .required("id", \.edit.id, .text(maxBytes: PublishedEdit.maxNameBytes), "Id of the edit."),
            .required("asset", \.edit.asset, .id(.asset), "The edited asset."),
            .required("state", \.edit.state, .name(PublishedEditState.self), "State of the edit."),
            .optional(
                "after",
                \.edit.predecessor,
                .text(maxBytes: PublishedEdit.maxNameBytes),
                "Id of the edit that this one is applied after."
            ),
            .optional("errorName", \.edit.errorName, .text(maxBytes: 64), "Name of the error if it failed."),
            .optional(
                "errorMessage",
                \.edit.errorMessage,
                .text(maxBytes: PublishedEdit.maxMessageBytes),
                "Why it failed, and what to do."
            ),
            .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction that recorded the state."),
            .defaulted("digest", \.digest, .text(maxBytes: 64), "Digest of its content.", default: ""),
        ]
    )
}

/// `edits.pending` of the catalog: accepted edits that are not finished, oldest first; for services.
public struct EditsPending: Request {
    public static let method = "edits.pending"
    /// The last sequence of the previous page; nil for the first page.
    public var after: Int64?
    /// Maximum number of edits.
    public var limit: Int

    public init(after: Int64? = nil, limit: Int = 500) {
        self.after = after
        self.limit = limit
    }

    public static let table = parameters(
        "Accepted edits that are not finished, oldest first. For services.",
        blank: EditsPending(),
        [
            .optional("after", \.after, .integer(0...Int64.max), "Only edits accepted after this sequence."),
            .defaulted("limit", \.limit, .count(1...1000), "Maximum number of edits.", default: 500),
        ]
    )

    public struct Result: JSONTabled {
        /// Oldest first.
        public var edits: [PendingEdit]
        /// The `after` of the next page; nil if this is the last page.
        public var next: Int64?

        public init(edits: [PendingEdit], next: Int64?) {
            self.edits = edits
            self.next = next
        }

        public static let table = JSONTable(
            "EditsPending",
            "Accepted edits that are not finished.",
            unknown: .ignored,
            blank: Result(edits: [], next: nil),
            [
                .required("edits", \.edits, .list(of: .object(PendingEdit.self), limit: 1000), "Oldest first."),
                .optional("next", \.next, .integer(0...Int64.max), "The after of the next page; absent on the last."),
            ]
        )
    }
}

/// An accepted edit that is not finished.
public struct PendingEdit: Sendable, Hashable, JSONTabled {
    /// Identity of the publisher.
    public var publisher: String
    /// The transaction that accepted it.
    public var sequence: Int64
    /// The edit as it was accepted.
    public var accepted: ChangeRequest.AcceptEdit

    public init(publisher: String, sequence: Int64, accepted: ChangeRequest.AcceptEdit) {
        self.publisher = publisher
        self.sequence = sequence
        self.accepted = accepted
    }

    public static let table = JSONTable(
        "PendingEdit",
        "An accepted edit that is not finished.",
        unknown: .ignored,
        blank: PendingEdit(
            publisher: "",
            sequence: 0,
            accepted: ChangeRequest.AcceptEdit(id: "", asset: .none, digest: "", content: .null)
        ),
        [
            .required("publisher", \.publisher, .text(maxBytes: 256), "Identity of the publisher."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction that accepted it."),
            .required("accepted", \.accepted, .object(ChangeRequest.AcceptEdit.self), "The edit as it was accepted."),
        ]
    )
}
