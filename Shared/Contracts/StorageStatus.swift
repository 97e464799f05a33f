public import JSONValue
import PhotoModel

/// `storage.status`: where the bytes of the library's resources are, and how the uploads to remote storage proceed.
public struct StorageStatus: Request {
    public static let method = "storage.status"

    public init() {}

    public static let table = parameters(
        "Where the bytes of the resources are, and how the uploads to remote storage proceed.",
        blank: StorageStatus(),
        []
    )

    /// The numbers of files and bytes, and the current problem of the remote store.
    public struct Result: JSONTabled {
        /// The remote store, for example `s3://bucket/prefix`; nil if there is none.
        public var store: String?
        /// `all` or `optimize`.
        public var policy: String?
        /// The bytes that local files may have under `optimize`; nil for `all`.
        public var budget: Int64?
        /// Number of files on this machine.
        public var localCount = 0
        /// Bytes of the files on this machine.
        public var localBytes: Int64 = 0
        /// Number of files that the remote store has confirmed.
        public var remoteCount = 0
        /// Bytes of the files that the remote store has confirmed.
        public var remoteBytes: Int64 = 0
        /// Number of files that wait for their upload.
        public var waitingCount = 0
        /// Number of files whose upload has failed.
        public var failedCount = 0
        /// Number of files that are kept on this machine.
        public var keptCount = 0
        /// Number of files that are being deleted at the remote store.
        public var deletingCount = 0
        /// Number of jobs of clients that wait.
        public var waitingJobCount = 0
        /// Number of jobs of clients whose transfers run.
        public var runningJobCount = 0
        /// Bytes per second of the latest uploads.
        public var uploadRate: Int64 = 0
        /// Bytes that were uploaded since the start of the catalog.
        public var uploadedBytes: Int64 = 0
        /// Bytes that were downloaded since the start of the catalog.
        public var downloadedBytes: Int64 = 0
        /// Bytes of the local files that were released since the start of the catalog.
        public var releasedBytes: Int64 = 0
        /// Name of the current problem; nil if there is none.
        public var problem: String?
        /// The problem, and its remedy; nil if there is none.
        public var message: String?
        /// The time at which the problem began, in microseconds since 1970; nil if there is none.
        public var since: Int64?

        public init() {}

        public static let table = JSONTable(
            "StorageStatus",
            "Where the bytes are, and how the uploads proceed.",
            unknown: .ignored,
            blank: Result(),
            [
                .optional("store", \.store, .text(maxBytes: 1024), "The remote store; absent if there is none."),
                .optional("policy", \.policy, .text(maxBytes: 16), "all or optimize."),
                .optional("budget", \.budget, .integer(0...Int64.max), "Bytes that local files may have."),
                .required("localCount", \.localCount, .count(0...Int.max), "Files on this machine."),
                .required("localBytes", \.localBytes, .integer(0...Int64.max), "Their bytes."),
                .required("remoteCount", \.remoteCount, .count(0...Int.max), "Files that the store has confirmed."),
                .required("remoteBytes", \.remoteBytes, .integer(0...Int64.max), "Their bytes."),
                .required("waitingCount", \.waitingCount, .count(0...Int.max), "Files that wait for their upload."),
                .required("failedCount", \.failedCount, .count(0...Int.max), "Files whose upload has failed."),
                .required("keptCount", \.keptCount, .count(0...Int.max), "Files that are kept on this machine."),
                .required("deletingCount", \.deletingCount, .count(0...Int.max), "Files being deleted at the store."),
                .required("waitingJobCount", \.waitingJobCount, .count(0...Int.max), "Jobs that wait."),
                .required("runningJobCount", \.runningJobCount, .count(0...Int.max), "Jobs whose transfers run."),
                .required(
                    "uploadRate",
                    \.uploadRate,
                    .integer(0...Int64.max),
                    "Bytes per second of the latest uploads."
                ),
                .required("uploadedBytes", \.uploadedBytes, .integer(0...Int64.max), "Bytes uploaded since the start."),
                .required(
                    "downloadedBytes",
                    \.downloadedBytes,
                    .integer(0...Int64.max),
                    "Bytes downloaded since the start."
                ),
                .required(
                    "releasedBytes",
                    \.releasedBytes,
                    .integer(0...Int64.max),
                    "Bytes of local files that were released since the start."
                ),
                .optional("problem", \.problem, .text(maxBytes: 64), "Name of the current problem."),
                .optional("message", \.message, .text(maxBytes: 2048), "The problem, and its remedy."),
                .optional("since", \.since, .date(), "When it began, in microseconds since 1970."),
            ]
        )
    }
}
