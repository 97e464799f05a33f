package import JSONValue

// Fields that several requests share, with one name, meaning and description each.
extension JSONField {
    /// Returns the field `id`: the identifier that a client gives to a new object.
    static func newID(_ path: Path<ObjectID?>, _ kind: ObjectKind) -> JSONField {
        .optional(
            "id",
            path,
            .id(kind),
            "The identifier to give to it, which the client generated: a letter, and in Crockford's base 32 the "
                + "milliseconds since 1970 (48 bits, at most a day from now) and 80 random bits. Absent: the catalog's."
        )
    }

    /// Returns the field `ref`: the client's placeholder for the entity that a request creates.
    static func ref(_ path: Path<String?>) -> JSONField {
        .optional("ref", path, .text(maxBytes: ObjectReference.maxPlaceholderBytes), "Placeholder for the new object.")
    }

    /// Returns the field `ifRevision`: the request succeeds only if the entity still has this revision.
    static func ifRevision(_ path: Path<Revision?>) -> JSONField {
        .optional("ifRevision", path, .revision, "Refused as conflict if the entity has another revision.")
    }

    /// Returns the field `ifContentRevision`: the request succeeds only if the pixels still have this revision.
    package static func ifContentRevision(_ path: Path<Revision?>) -> JSONField {
        .optional(
            "ifContentRevision",
            path,
            .revision,
            "Refused as conflict if the asset has another content revision."
        )
    }

    /// Returns the field `base` of a revert.
    package static func shownOriginal(_ path: Path<OriginalChoice?>) -> JSONField {
        .optional(
            "base",
            path,
            .name(OriginalChoice.self),
            "The original to present from now on, if there are a RAW and a compressed one (T-26)."
        )
    }

    /// Returns the field `edit`: the published edit that the change carries out.
    static func publishedEdit(_ path: Path<String?>) -> JSONField {
        .optional(
            "edit",
            path,
            .publishedEditID,
            "For services: the accepted edit that this applies; refused as conflict if it is finished."
        )
    }
}
