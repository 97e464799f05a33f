public import JSONValue
public import PhotoModel

// Requests about the whole library: backups and referenced files. They are accepted over ipc only.

/// `library.backup`: copies the database at one sequence and all bytes that it refers to.
///
/// A DEALER client gets `library.progress {done, total}` notifications.
public struct BackupLibrary: Request {
    public static let method = "library.backup"
    public static let notification = "library.progress"
    /// Absolute path of a folder on the catalog's machine: empty, not existing, or an earlier backup.
    public var target: String
    /// True if bytes that the target already has are read and compared with their digests.
    public var verifies: Bool

    public init(target: String, verifies: Bool = false) {
        self.target = target
        self.verifies = verifies
    }

    public static let table = parameters(
        "Backs up the library. A repeated backup to the same folder copies only what is new.",
        blank: BackupLibrary(target: ""),
        [
            .required("target", \.target, .text(maxBytes: 4096), "Absolute path on the catalog's machine."),
            .defaulted(
                "verify",
                \.verifies,
                .flag,
                "Also read and compare bytes that the target already has.",
                default: false
            ),
        ]
    )

    public struct Result: JSONTabled {
        /// The token of the backup: it contains everything up to this sequence.
        public var token: ChangeToken
        /// Number of resources.
        public var resources: Int = 0
        /// Total size of all resources in bytes.
        public var bytes: Int64 = 0
        /// Resources shared with the library by hard links.
        public var linked: Int = 0
        /// Resources copied.
        public var copied: Int = 0
        /// Resources that the target already had.
        public var present: Int = 0
        /// Referenced files outside the library; they are listed but not copied.
        public var referenced: Int = 0
        /// Resources removed from the earlier backup because the library no longer has them.
        public var removed: Int = 0

        public init(token: ChangeToken) { self.token = token }

        public static let table = JSONTable(
            "Backup",
            "Statistics of a backup.",
            unknown: .ignored,
            blank: Result(token: .none),
            [
                .required("token", \.token, .token, "Token up to which the backup is complete."),
                .required("resources", \.resources, .count(0...Int.max), "Number of resources."),
                .required("bytes", \.bytes, .integer(0...Int64.max), "Total size of all resources in bytes."),
                .required("linked", \.linked, .count(0...Int.max), "Shared with the library by hard links."),
                .required("copied", \.copied, .count(0...Int.max), "Copied."),
                .required("present", \.present, .count(0...Int.max), "Present from an earlier backup."),
                .required("referenced", \.referenced, .count(0...Int.max), "Referenced files, listed but not copied."),
                .required("removed", \.removed, .count(0...Int.max), "Removed from the earlier backup."),
            ]
        )
    }
}

/// `library.rescan`: compares the referenced files with the files on disk.
///
/// A DEALER client gets `library.progress {done, total}` notifications with numbers of referenced files.
public struct RescanLibrary: Request {
    public static let method = "library.rescan"
    /// Maximum number of paths in each list of the result.
    public static let maxPaths = 1000
    /// Path of a folder below the configured roots; nil for all roots.
    public var root: String?

    public init(root: String? = nil) { self.root = root }

    public static let table = parameters(
        "Compares referenced files with the disk and reports changed, moved, missing and new files.",
        blank: RescanLibrary(),
        [.optional("root", \.root, .text(maxBytes: 4096), "Path of a folder; absent: all configured roots.")]
    )

    /// A referenced file that was moved.
    public struct Move: Sendable, Hashable, JSONTabled {
        /// Its old path.
        public var from: String
        /// Its new path.
        public var to: String

        public init(from: String, to: String) {
            self.from = from
            self.to = to
        }

        public static let table = JSONTable(
            "Move",
            "A referenced file that was moved.",
            unknown: .ignored,
            blank: Move(from: "", to: ""),
            [
                .required("from", \.from, .text(maxBytes: 8192), "Its old path."),
                .required("to", \.to, .text(maxBytes: 8192), "Its new path."),
            ]
        )
    }

    public struct Result: JSONTabled {
        /// Referenced files without changes.
        public var unchanged: Int = 0
        /// Files with new dates or inodes but the same bytes; their stored attributes were updated.
        public var refreshed: Int = 0
        /// Files with other bytes.
        public var changedCount: Int = 0
        /// Files found at another path by content.
        public var movedCount: Int = 0
        /// Files that were not found.
        public var missingCount: Int = 0
        /// Files that are not in the library.
        public var newCount: Int = 0
        /// Referenced files in folders that cannot be read; their state did not change.
        public var unknown: Int = 0
        /// Files with other bytes; they are never served.
        public var changed: [String] = []
        /// Files found at another path by content.
        public var moved: [Move] = []
        /// Files that were not found; their assets stay.
        public var missing: [String] = []
        /// Files that are not in the library.
        public var new: [String] = []
        /// Folders that cannot be read, or whose disk appears not to be mounted.
        public var unreadable: [String] = []

        public init() {}

        private static let path = JSONType<[String]>.list(of: .text(maxBytes: 8192), limit: maxPaths)

        public static let table = JSONTable(
            "Rescan",
            "The differences; each list has at most \(maxPaths) paths, the counts are complete.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("unchanged", \.unchanged, .count(0...Int.max), "Files without changes."),
                .required("refreshed", \.refreshed, .count(0...Int.max), "Touched files whose bytes are the same."),
                .required("changedCount", \.changedCount, .count(0...Int.max), "Files with other bytes."),
                .required("movedCount", \.movedCount, .count(0...Int.max), "Files found at another path by content."),
                .required("missingCount", \.missingCount, .count(0...Int.max), "Files that were not found."),
                .required("newCount", \.newCount, .count(0...Int.max), "Files that are not in the library."),
                .required("unknown", \.unknown, .count(0...Int.max), "Files in folders that cannot be read."),
                .required("changed", \.changed, path, "Files with other bytes; they are never served."),
                .required(
                    "moved",
                    \.moved,
                    .list(of: .object(Move.self), limit: maxPaths),
                    "Files found at another path by content."
                ),
                .required("missing", \.missing, path, "Files that were not found; their assets stay."),
                .required("new", \.new, path, "Files that are not in the library."),
                .required("unreadable", \.unreadable, path, "Folders that cannot be read."),
            ]
        )
    }
}

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
