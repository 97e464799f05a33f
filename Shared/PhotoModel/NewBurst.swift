public import JSONValue

/// The burst to which a new asset belongs, for bursts whose assets are imported one by one (P-21).
public struct NewBurst: Sendable, Hashable, JSONTabled {
    /// The identifier that its frames share.
    public var identifier: String
    /// True if this frame represents the burst. If it is true for several frames, the last one represents it.
    public var isRepresentative: Bool
    /// The ways in which the frame was selected.
    public var selection: BurstSelectionTypes

    public init(identifier: String, isRepresentative: Bool = false, selection: BurstSelectionTypes = []) {
        self.identifier = identifier
        self.isRepresentative = isRepresentative
        self.selection = selection
    }

    public static let table = JSONTable(
        "NewBurst",
        "The burst to which a new asset belongs.",
        unknown: .refused,
        blank: NewBurst(identifier: ""),
        [
            .required("identifier", \.identifier, .text(maxBytes: TextLimit.burstIdentifier), "Shared by its frames."),
            .defaulted("representative", \.isRepresentative, .flag, "This frame represents the burst.", default: false),
            .defaulted(
                "selection",
                \.selection,
                .bits(BurstSelectionTypes.self),
                "How the frame was selected.",
                default: []
            ),
        ]
    )
}
