public import JSONValue

/// `storage.verify`: compares what the remote store has with what it has confirmed.
///
/// A DEALER client gets `library.progress {done, total}` notifications.
public struct VerifyStorage: Request {
    public static let method = "storage.verify"
    /// The number of objects; nil for all.
    public var count: Int?
    /// True to download the bytes and compare them with their SHA-256; false to compare only sizes and checksums.
    public var readsBytes: Bool

    public init(count: Int? = nil, readsBytes: Bool = false) {
        self.count = count
        self.readsBytes = readsBytes
    }

    public static let table = parameters(
        "Compares what the remote store has with what it has confirmed. Lost or damaged objects whose bytes are on this "
            + "machine are uploaded again.",
        blank: VerifyStorage(),
        [
            .optional("count", \.count, .count(1...Int.max), "Number of objects, spread over all; absent: all."),
            .defaulted("readBytes", \.readsBytes, .flag, "Download them, and compare the bytes.", default: false),
        ]
    )

    /// The state of the objects at the remote store.
    public struct Result: JSONTabled {
        /// Number of objects that were compared.
        public var checked = 0
        /// SHA-256 of the first ``maxDigests`` objects that the store does not have any more.
        public var missing: [String] = []
        /// SHA-256 of the first ``maxDigests`` objects with other bytes.
        public var damaged: [String] = []
        /// Number of lost or damaged objects that are uploaded again.
        public var repaired = 0
        /// The maximum number of digests in each list.
        public static let maxDigests = 100

        public init() {}

        public static let table = JSONTable(
            "StorageVerified",
            "The state of the objects at the remote store.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("checked", \.checked, .count(0...Int.max), "Number of objects that were compared."),
                .defaulted(
                    "missing",
                    \.missing,
                    .list(of: .text(maxBytes: 64), limit: maxDigests),
                    "SHA-256 of the first objects that the store does not have any more.",
                    default: []
                ),
                .defaulted(
                    "damaged",
                    \.damaged,
                    .list(of: .text(maxBytes: 64), limit: maxDigests),
                    "SHA-256 of the first objects with other bytes.",
                    default: []
                ),
                .required("repaired", \.repaired, .count(0...Int.max), "Number of objects that are uploaded again."),
            ]
        )
    }
}
