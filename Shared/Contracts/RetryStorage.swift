public import JSONValue

/// `storage.retry`: registers failed uploads again, and tries an unreachable store at once.
public struct RetryStorage: Request {
    public static let method = "storage.retry"

    public init() {}

    public static let table = parameters(
        "Registers failed uploads again, and tries an unreachable store at once.",
        blank: RetryStorage(),
        []
    )

    /// The uploads that are tried again.
    public struct Result: JSONTabled {
        /// Number of uploads that are tried again.
        public var count: Int
        public init(count: Int) { self.count = count }
        public static let table = JSONTable(
            "StorageRetried",
            "Uploads that are tried again.",
            unknown: .ignored,
            blank: Result(count: 0),
            [.required("count", \.count, .count(0...Int.max), "Number of uploads that are tried again.")]
        )
    }
}
