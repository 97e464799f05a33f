public import JSONValue
public import Messaging
public import PhotoModel

/// `edits.publish`: an edit that a script hands over and need not wait for (DESIGN 3.5).
///
/// A notification, pushed to the edits endpoint (PUSH to PULL). There is no receipt: its publisher sends it again, the
/// same, until it sees the edit `accepted`, on the feed under `edit.<id>` or by ``EditsStatus``.
public struct PublishEdit: Sendable, Hashable, JSONTabled {
    public static let method = "edits.publish"
    /// The publisher's own name for the edit. Every other edit of the publisher has another one.
    public var id: String
    public var asset: ObjectID
    public var adjustments: AdjustmentList
    /// The publisher's previous edit of the asset: this one is applied after it.
    public var predecessor: String?
    public var mode: AdjustmentMode
    public var ifContentRevision: Revision?
    /// In place of the list: that of another asset, as it is when this edit is carried out.
    public var source: ObjectID?
    /// Puts what `edits.suggest` answers before the operations.
    public var enhance = false
    /// In place of the list: back to the original.
    public var revert = false
    /// In place of the list: back to a step of the asset's history; 0 is the original.
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
        "An edit to be accepted, applied and told of on the feed; a notification, pushed to the edits endpoint.",
        unknown: .refused,
        blank: PublishEdit(id: "", asset: .none, adjustments: AdjustmentList()),
        [
            .required("id", \.id, .editName, "Your own name for the edit, another for each."),
            .asset(\.asset),
            .defaulted(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations, in their order. Exactly one of adjustments, from, revert and step; with enhance none.",
                default: AdjustmentList(),
                isWritten: true
            ),
            .optional("from", \.source, .id(.asset), "The operations of another asset, as edits.copy takes them."),
            .defaulted("enhance", \.enhance, .flag, "Puts what edits.suggest answers before them.", default: false),
            .defaulted("revert", \.revert, .flag, "Discards all edits, as edits.revert does.", default: false),
            .optional("step", \.step, .count(0...Int.max), "Back to a step of the history, as edits.undo does."),
            .optional("after", \.predecessor, .editName, "Your previous edit of the asset: applied after it."),
            .mode(\.mode),
            .optional(
                "ifContentRevision",
                \.ifContentRevision,
                .revision,
                "Fails as conflict when its pixels have another revision."
            ),
        ]
    )

    /// Reads an edit as it was published, and whether it says what is to be done.
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
            throw JSONProblem("an edit does not come after itself", path: ["after"])
        }
        return edit
    }

    /// The one frame of the message.
    public var frame: Bytes {
        (["jsonrpc": "2.0", "method": .string(Self.method), "params": json] as JSON).bytes
    }

    /// The same as a request to the editor, where the list itself was given.
    public var request: ApplyEdit {
        ApplyEdit(asset: asset, adjustments: adjustments, mode: mode, ifContentRevision: ifContentRevision)
    }
}

/// What a message to the edits endpoint says.
public enum PublishedMessage: Sendable {
    /// An edit, with its parameters as they came.
    case edit(PublishEdit, params: JSON)
    /// No edit, but it says which one it means: that one has failed.
    case broken(BrokenEdit)
    /// Nobody can be told.
    case unreadable(RPCError)

    /// A message whose fault can be told to its publisher.
    public struct BrokenEdit: Sendable {
        public let id: String
        public let asset: ObjectID
        public let predecessor: String?
        public let params: JSON
        public let error: RPCError
    }

    /// Reads the frames of a message.
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
                throw Refusal.invalidParams.error("\(PublishEdit.method): \(error.description)")
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
            throw Refusal.limitExceeded.error(
                "an edit has at most \(ChangeRequest.AcceptEdit.maxContentBytes) bytes, this one has \(bytes)"
            )
        }
    }

    private static func broken(_ params: JSON, _ error: RPCError) -> PublishedMessage {
        guard let name = params["id"], let id = try? JSONType.editName.decode(name),
            let asset = params["asset"]?.stringValue.flatMap({ ObjectID($0) }), asset.kind == .asset
        else { return .unreadable(error) }
        let predecessor = params["after"].flatMap { try? JSONType.editName.decode($0) }
        return .broken(BrokenEdit(id: id, asset: asset, predecessor: predecessor, params: params, error: error))
    }
}

/// `edits.status` of the catalog: where published edits stand.
///
/// For publishers that missed an outcome on the feed: a finished edit that is sent again makes no new record.
public struct EditsStatus: Request {
    public static let method = "edits.status"
    public var ids: [String]
    /// For services: the publisher.
    public var onBehalfOf: String?

    public static let maxIDs = 1000

    public init(ids: [String], onBehalfOf: String? = nil) {
        self.ids = ids
        self.onBehalfOf = onBehalfOf
    }

    public static let table = parameters(
        "Where edits stand that this identity has published.",
        blank: EditsStatus(ids: []),
        [
            .required("ids", \.ids, .list(of: .editName, limit: maxIDs), "The publisher's names for them."),
            .optional("onBehalfOf", \.onBehalfOf, .text(maxBytes: 256), "For services: the publisher."),
        ]
    )

    public struct Result: JSONTabled {
        /// Those that are known, in the order of the question.
        public var edits: [EditStatus]
        /// Those that never arrived, or that finished longer ago than finished edits are kept.
        public var unknown: [String]

        public init(edits: [EditStatus], unknown: [String]) {
            self.edits = edits
            self.unknown = unknown
        }

        public static let table = JSONTable(
            "EditsStatus",
            "Where published edits stand.",
            unknown: .ignored,
            blank: Result(edits: [], unknown: []),
            [
                .required("edits", \.edits, .list(of: .object(EditStatus.self), limit: maxIDs), "Those known."),
                .required(
                    "unknown",
                    \.unknown,
                    .list(of: .text(maxBytes: PublishedEdit.maxNameBytes), limit: maxIDs),
                    "Those that never arrived, or finished longer ago than the history is kept: publish them."
                ),
            ]
        )
    }
}

/// A published edit, and the transaction that brought it to its state.
public struct EditStatus: Sendable, Hashable, JSONTabled {
    public var edit: PublishedEdit
    public var sequence: Int64
    /// Of its content, as ``PublishedEdit/refusedDigest`` is.
    public var digest: String

    public init(edit: PublishedEdit, sequence: Int64, digest: String) {
        self.edit = edit
        self.sequence = sequence
        self.digest = digest
    }

    public static let table = JSONTable(
        "EditStatus",
        "A published edit, and the transaction that brought it to its state.",
        unknown: .ignored,
        blank: EditStatus(edit: PublishedEdit(id: "", asset: .none, state: .accepted), sequence: 0, digest: ""),
        [
            .required("id", \.edit.id, .text(maxBytes: PublishedEdit.maxNameBytes), "The publisher's name for it."),
            .required("asset", \.edit.asset, .id(.asset), "What is edited."),
            .required("state", \.edit.state, .name(PublishedEditState.self), "Where it stands."),
            .optional(
                "after",
                \.edit.predecessor,
                .text(maxBytes: PublishedEdit.maxNameBytes),
                "The publisher's previous edit of the asset."
            ),
            .optional("errorName", \.edit.errorName, .text(maxBytes: 64), "Why it failed."),
            .optional(
                "errorMessage",
                \.edit.errorMessage,
                .text(maxBytes: PublishedEdit.maxMessageBytes),
                "Why it failed, and what to do."
            ),
            .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction that brought it there."),
            .defaulted("digest", \.digest, .text(maxBytes: 64), "Of its content.", default: ""),
        ]
    )
}

/// `edits.pending` of the catalog: what was accepted and is not finished, oldest first; for services.
public struct EditsPending: Request {
    public static let method = "edits.pending"
    /// The last sequence of the page before; nil for the first page.
    public var after: Int64?
    public var limit: Int

    public init(after: Int64? = nil, limit: Int = 500) {
        self.after = after
        self.limit = limit
    }

    public static let table = parameters(
        "Edits that were accepted and are not finished, oldest first. For services.",
        blank: EditsPending(),
        [
            .optional("after", \.after, .integer(0...Int64.max), "Those accepted after this sequence."),
            .defaulted("limit", \.limit, .count(1...1000), "Most edits to answer.", default: 500),
        ]
    )

    public struct Result: JSONTabled {
        public var edits: [PendingEdit]
        /// Where the next page begins; nil where this was the last.
        public var next: Int64?

        public init(edits: [PendingEdit], next: Int64?) {
            self.edits = edits
            self.next = next
        }

        public static let table = JSONTable(
            "EditsPending",
            "Edits that were accepted and are not finished.",
            unknown: .ignored,
            blank: Result(edits: [], next: nil),
            [
                .required("edits", \.edits, .list(of: .object(PendingEdit.self), limit: 1000), "Oldest first."),
                .optional("next", \.next, .integer(0...Int64.max), "Where the next page begins."),
            ]
        )
    }
}

/// An edit that was accepted and is not finished.
public struct PendingEdit: Sendable, Hashable, JSONTabled {
    public var publisher: String
    /// The transaction that accepted it.
    public var sequence: Int64
    /// As in ``ChangeRequest/AcceptEdit``.
    public var accepted: ChangeRequest.AcceptEdit

    public init(publisher: String, sequence: Int64, accepted: ChangeRequest.AcceptEdit) {
        self.publisher = publisher
        self.sequence = sequence
        self.accepted = accepted
    }

    public static let table = JSONTable(
        "PendingEdit",
        "An edit that was accepted and is not finished.",
        unknown: .ignored,
        blank: PendingEdit(
            publisher: "",
            sequence: 0,
            accepted: ChangeRequest.AcceptEdit(id: "", asset: .none, digest: "", content: .null)
        ),
        [
            .required("publisher", \.publisher, .text(maxBytes: 256), "Who published it."),
            .required("sequence", \.sequence, .integer(0...Int64.max), "The transaction that accepted it."),
            .required("accepted", \.accepted, .object(ChangeRequest.AcceptEdit.self), "What was accepted."),
        ]
    )
}
