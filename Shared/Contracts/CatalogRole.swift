/// The role of a catalog among those of its library.
public enum CatalogRole: String, Sendable, CaseIterable {
    /// It accepts changes.
    case writer
    /// It answers reads, and refuses changes until it takes over.
    case standby

    /// The description of the member `epoch` of results.
    static let epoch =
        "Of several catalogs: the number of the current writer as far as it is known; a takeover raises it."
}
