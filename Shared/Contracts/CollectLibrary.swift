public import JSONValue
import PhotoModel

/// `library.collect`: removes unreferenced stored bytes now instead of at the next run of the collector.
public struct CollectLibrary: Request {
    public static let method = "library.collect"
    /// True if they are only counted, not removed.
    public var isDryRun: Bool

    public init(isDryRun: Bool = false) { self.isDryRun = isDryRun }

    public static let table = parameters(
        "Removes unreferenced stored bytes now; the catalog otherwise removes them periodically.",
        blank: CollectLibrary(),
        [.defaulted("dryRun", \.isDryRun, .flag, "Count them only.", default: false)]
    )

    /// The unreferenced stored bytes.
    public struct Result: JSONTabled {
        /// Number of files.
        public var count: Int
        /// Their total size in bytes.
        public var bytes: Int64

        public init(count: Int = 0, bytes: Int64 = 0) {
            self.count = count
            self.bytes = bytes
        }

        public static let table = JSONTable(
            "Collected",
            "Unreferenced stored bytes.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("count", \.count, .count(0...Int.max), "Number of files."),
                .required("bytes", \.bytes, .integer(0...Int64.max), "Their total size in bytes."),
            ]
        )
    }
}
