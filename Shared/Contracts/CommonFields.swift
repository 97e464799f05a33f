import JSONValue
import PhotoModel

// Members that several requests and results share, declared once with their name, type and description.

extension JSONField {
    // MARK: Subject and token

    static func asset(_ path: Path<ObjectID>) -> JSONField { .required("asset", path, .id(.asset), "The asset.") }

    /// Returns the field `fetch` of a request, by default all entities of a kind.
    ///
    /// - Parameter defaultKind: the kind of a fetch that names none; nil if it follows from the other members
    static func fetch(
        _ path: Path<FetchDescription>,
        _ summary: String,
        of kind: FetchDescription.Kind,
        defaultKind: FetchDescription.Kind? = nil
    ) -> JSONField {
        .defaulted(
            "fetch",
            path,
            .fetch(of: defaultKind),
            summary,
            default: FetchDescription(kind)
        )
    }

    static func atLeast(_ path: Path<ChangeToken?>) -> JSONField {
        .optional("atLeast", path, .token, "The service answers once it has reached this token; else behind.")
    }

    /// Returns the field `sequence` of a result.
    static func sequence(_ path: Path<Int64>) -> JSONField {
        .required("sequence", path, .integer(0...Int64.max), "Sequence of the transaction at which it was read.")
    }

    // MARK: Details and observed fetches

    /// Returns the field `objectWasDeleted` of the details of a result.
    static func objectWasDeleted(_ path: Path<Bool>) -> JSONField {
        .defaulted(
            "objectWasDeleted",
            path,
            .flag,
            "True if the album, moment or folder of the fetch, or the object whose collections it selects, is deleted.",
            default: false
        )
    }

    static func incremental(_ path: Path<Bool>) -> JSONField {
        .defaulted(
            "incremental",
            path,
            .flag,
            "False to get only whether the result has changed, and the objects after the change.",
            default: true
        )
    }

    static func form(_ path: Path<DetailsForm>) -> JSONField {
        .defaulted("form", path, .name(DetailsForm.self), "Form of the change details.", default: .details)
    }

    // MARK: Writes

    static func client(_ path: Path<String>) -> JSONField {
        .defaulted("client", path, .storableText(maxBytes: 128), "Name of the client program.", default: "")
    }

    static func transaction(_ path: Path<String?>) -> JSONField {
        .optional(
            "transaction",
            path,
            .storableText(maxBytes: 128, isName: true),
            "Transaction id, chosen by the client."
        )
    }

    // MARK: Edits

    static func mode(_ path: Path<AdjustmentMode>) -> JSONField {
        .defaulted(
            "mode",
            path,
            .name(AdjustmentMode.self),
            "Replace the current operations, or append to them.",
            default: .replace
        )
    }

    static func priority(_ path: Path<EditPriority>) -> JSONField {
        .defaulted("priority", path, .name(EditPriority.self), "Priority of the render.", default: .normal)
    }

    static func magick(_ path: Path<MagickOptions?>) -> JSONField {
        .optional(
            "magick",
            path,
            .magick,
            "Options of ImageMagick's convert, which become operations after the adjustments; allowed are "
                + MagickOptions.allowed.joined(separator: ", ") + "."
        )
    }

    static func engine(_ path: Path<RenderEngine?>) -> JSONField {
        .optional(
            "engine",
            path,
            .name(RenderEngine.self),
            "The engine that renders the pixels: fused, or ImageMagick's functions. Default: the one that the "
                + "adjustments name, else that of the current edit for mode append, else the editor's setting."
        )
    }

    static func dryRun(_ path: Path<Bool>) -> JSONField {
        .defaulted("dryRun", path, .flag, "Validate only; render and commit nothing.", default: false)
    }

    // MARK: Remote storage

    static func networkAccess(_ path: Path<Bool>) -> JSONField {
        .defaulted(
            "networkAccessAllowed",
            path,
            .flag,
            "True if bytes may be downloaded from remote storage; false: those that are only there are "
                + "network_access_required.",
            default: false
        )
    }

    // MARK: Images

    static func version(_ path: Path<ImageVersion>) -> JSONField {
        .defaulted("version", path, .name(ImageVersion.self), "The image with or without edits.", default: .current)
    }

    static func cache(_ path: Path<String>) -> JSONField {
        .required("cache", path, .text(maxBytes: 64), "Id of the caching manager, from cache.open.")
    }
}

extension JSONType where Value == String {
    /// Returns the type of text that the catalog stores, with a maximum length in UTF-8 bytes. Not every database can
    /// store U+0000.
    ///
    /// - Parameter isName: true for a name, which must not be empty: all clients without a name would share it
    static func storableText(maxBytes: Int, isName: Bool = false) -> JSONType {
        let text = isName ? name(maxBytes: maxBytes) : text(maxBytes: maxBytes)
        return JSONType(
            schema: text.schema(),
            decode: { (json: JSON) throws(JSONProblem) in
                let value = try text.decode(json)
                guard !value.utf8.contains(0) else { throw JSONProblem("must not contain U+0000") }
                return value
            },
            encode: text.encode
        )
    }
}

extension JSONType where Value == JSONObject {
    /// The type of an object with arbitrary members.
    static var members: JSONType {
        JSONType(
            schema: ["type": "object"],
            decode: { (json: JSON) throws(JSONProblem) in
                guard let object = json.objectValue else { throw JSONProblem("expected an object") }
                return object
            },
            encode: { .object($0) }
        )
    }
}
