public import JSONValue
public import PhotoModel

/// `storage.keep`: keeps the resources of a fetch's assets on this machine, or releases them.
///
/// A DEALER client gets `library.progress {done, total}` notifications.
public struct KeepInStorage: Request {
    public static let method = "storage.keep"
    /// The assets.
    public var fetch: FetchDescription
    /// True to download and keep, false to allow and begin the release of local files.
    public var isKept: Bool

    public init(fetch: FetchDescription, isKept: Bool = true) {
        self.fetch = fetch
        self.isKept = isKept
    }

    public static let table = parameters(
        "Downloads the resources of a fetch's assets and keeps them on this machine; with keep false, releases the "
            + "local files whose bytes are in remote storage.",
        blank: KeepInStorage(fetch: FetchDescription(.assets)),
        [
            .fetch(\.fetch, "The assets.", of: .assets, defaultKind: .assets),
            .defaulted("keep", \.isKept, .flag, "Keep them, or release them.", default: true),
        ]
    )

    /// The files that were downloaded, or released.
    public struct Result: JSONTabled {
        /// Number of assets.
        public var assets = 0
        /// Number of files that were downloaded, or released.
        public var count = 0
        /// Their bytes.
        public var bytes: Int64 = 0

        public init() {}

        public static let table = JSONTable(
            "StorageKept",
            "Files that were downloaded, or released.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("assets", \.assets, .count(0...Int.max), "Number of assets."),
                .required("count", \.count, .count(0...Int.max), "Number of files that were downloaded or released."),
                .required("bytes", \.bytes, .integer(0...Int64.max), "Their bytes."),
            ]
        )
    }
}
