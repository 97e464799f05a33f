package import JSONValue

// Members that several requests have alike: the name, the meaning and the words are here, once.
extension JSONField {
    /// `ref`: the client's name for what a request makes.
    static func ref(_ path: Path<String?>) -> JSONField {
        .optional("ref", path, .text(maxBytes: ObjectReference.maxPlaceholderBytes), "Placeholder for it.")
    }

    /// `ifRevision`: only where nobody changed the entity meanwhile.
    static func ifRevision(_ path: Path<Revision?>) -> JSONField {
        .optional("ifRevision", path, .revision, "Refused as conflict when it has another revision.")
    }

    /// `ifContentRevision`: only where nobody changed the pixels meanwhile.
    package static func ifContentRevision(_ path: Path<Revision?>) -> JSONField {
        .optional("ifContentRevision", path, .revision, "Refused as conflict when its pixels have another revision.")
    }

    /// `base` of a revert.
    package static func shownOriginal(_ path: Path<OriginalChoice?>) -> JSONField {
        .optional(
            "base",
            path,
            .name(OriginalChoice.self),
            "Which original is shown from now on, where there is a RAW and a compressed one (spec T-26)."
        )
    }

    /// `edit` of a change that carries out a published edit.
    static func publishedEdit(_ path: Path<String?>) -> JSONField {
        .optional(
            "edit",
            path,
            .editName,
            "For services: the accepted edit that is applied with it; refused as conflict when it is finished."
        )
    }
}
