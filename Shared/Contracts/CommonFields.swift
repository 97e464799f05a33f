import JSONValue
import PhotoModel

// Members that several requests and results have alike: the name, the meaning and the words are here, once.

extension JSONField {
    // MARK: What is asked about, and as of when

    static func asset(_ path: Path<ObjectID>) -> JSONField { .required("asset", path, .id(.asset), "The asset.") }

    /// `fetch` of a request that has one of its own where none is given: all entities of a kind.
    static func fetch(_ path: Path<FetchDescription>, _ summary: String, of kind: FetchSubject) -> JSONField {
        .defaulted(
            "fetch",
            path,
            .object(FetchDescription.self),
            summary,
            default: FetchDescription(kind)
        )
    }

    static func atLeast(_ path: Path<ChangeToken?>) -> JSONField {
        .optional("atLeast", path, .token, "Answer at this moment or a later one.")
    }

    /// `sequence` of a result.
    static func sequence(_ path: Path<Int64>) -> JSONField {
        .required("sequence", path, .integer(0...Int64.max), "The transaction at which it was read.")
    }

    // MARK: Of live results

    static func incremental(_ path: Path<Bool>) -> JSONField {
        .defaulted(
            "incremental",
            path,
            .flag,
            "False: only whether it changed, and the after list.",
            default: true
        )
    }

    static func form(_ path: Path<DetailsForm>) -> JSONField {
        .defaulted("form", path, .name(DetailsForm.self), "In which form details are given.", default: .details)
    }

    // MARK: Of writes

    static func client(_ path: Path<String>) -> JSONField {
        .defaulted("client", path, .text(maxBytes: 128), "The name the client gives itself.", default: "")
    }

    static func transaction(_ path: Path<String?>) -> JSONField {
        .optional("transaction", path, .text(maxBytes: 128), "The client's name for the transaction.")
    }

    // MARK: Of edits

    static func mode(_ path: Path<AdjustmentMode>) -> JSONField {
        .defaulted(
            "mode",
            path,
            .name(AdjustmentMode.self),
            "In place of the operations there are, or after them.",
            default: .replace
        )
    }

    static func priority(_ path: Path<EditPriority>) -> JSONField {
        .defaulted("priority", path, .name(EditPriority.self), "How soon it is rendered.", default: .normal)
    }

    static func dryRun(_ path: Path<Bool>) -> JSONField {
        .defaulted("dryRun", path, .flag, "Checks everything, renders and commits nothing.", default: false)
    }

    // MARK: Of images

    static func version(_ path: Path<ImageVersion>) -> JSONField {
        .defaulted("version", path, .name(ImageVersion.self), "With the edits or without.", default: .current)
    }

    static func cache(_ path: Path<String>) -> JSONField {
        .required("cache", path, .text(maxBytes: 64), "The caching manager.")
    }
}

extension JSONType where Value == JSONObject {
    /// An object with members of any name.
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
