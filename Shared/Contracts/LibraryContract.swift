public import JSONValue
public import PhotoModel

// What is asked about the library as a whole: copies of it, and the files that it references. Over ipc only.

/// `library.backup`: a copy of the database at one moment and of all bytes that it names.
///
/// On DEALER it tells of its progress by notifications `library.progress {done, total}`.
public struct BackupLibrary: Request {
    public static let method = "library.backup"
    public static let notification = "library.progress"
    /// A folder on the catalog's machine, absolute: empty, not there yet, or an earlier backup.
    public var target: String
    /// Whether bytes that the target has already are read and compared with their digests too.
    public var verifies: Bool

    public init(target: String, verifies: Bool = false) {
        self.target = target
        self.verifies = verifies
    }

    public static let table = parameters(
        "Copies the library at one moment; again to the same folder it copies what is new.",
        blank: BackupLibrary(target: ""),
        [
            .required("target", \.target, .text(maxBytes: 4096), "A folder on the catalog's machine."),
            .defaulted(
                "verify",
                \.verifies,
                .flag,
                "Bytes that the target has already are read and compared too.",
                default: false
            ),
        ]
    )

    public struct Result: JSONTabled {
        /// The moment that was copied: everything up to this sequence is there.
        public var token: ChangeToken
        public var resources: Int = 0
        /// Bytes of all resources.
        public var bytes: Int64 = 0
        public var linked: Int = 0
        public var copied: Int = 0
        public var present: Int = 0
        /// Files outside the library that stand for resources; they are named but not copied.
        public var referenced: Int = 0
        /// Resources of the earlier backup that the library no longer has.
        public var removed: Int = 0

        public init(token: ChangeToken) { self.token = token }

        public static let table = JSONTable(
            "Backup",
            "What was copied.",
            unknown: .ignored,
            blank: Result(token: .none),
            [
                .required("token", \.token, .token, "The moment that was copied."),
                .required("resources", \.resources, .count(0...Int.max), "Resources."),
                .required("bytes", \.bytes, .integer(0...Int64.max), "Bytes of all resources."),
                .required("linked", \.linked, .count(0...Int.max), "Shared with the library by hard links."),
                .required("copied", \.copied, .count(0...Int.max), "Copied."),
                .required("present", \.present, .count(0...Int.max), "There from an earlier backup."),
                .required("referenced", \.referenced, .count(0...Int.max), "Files outside, named but not copied."),
                .required("removed", \.removed, .count(0...Int.max), "Taken out of the earlier backup."),
            ]
        )
    }
}

/// `library.rescan`: compares the files that the library references with what is on the disk.
///
/// On DEALER it reports its progress as `library.backup` does: referenced files that were compared, of how many.
public struct RescanLibrary: Request {
    public static let method = "library.rescan"
    /// Paths told in one answer, of each kind.
    public static let maxPaths = 1000
    /// A folder below the configured ones; nil: all of them.
    public var root: String?

    public init(root: String? = nil) { self.root = root }

    public static let table = parameters(
        "Compares referenced files with the disk: changed, moved, missing and new ones.",
        blank: RescanLibrary(),
        [.optional("root", \.root, .text(maxBytes: 4096), "A folder; absent: all that are configured.")]
    )

    /// A referenced file that is somewhere else now.
    public struct Move: Sendable, Hashable, JSONTabled {
        public var from: String
        public var to: String

        public init(from: String, to: String) {
            self.from = from
            self.to = to
        }

        public static let table = JSONTable(
            "Move",
            "A file that is somewhere else now.",
            unknown: .ignored,
            blank: Move(from: "", to: ""),
            [
                .required("from", \.from, .text(maxBytes: 8192), "Where it was."),
                .required("to", \.to, .text(maxBytes: 8192), "Where it is."),
            ]
        )
    }

    public struct Result: JSONTabled {
        /// Referenced files that are what they were.
        public var unchanged: Int = 0
        /// Touched or copied, with the bytes that they had: good again.
        public var refreshed: Int = 0
        public var changedCount: Int = 0
        public var movedCount: Int = 0
        public var missingCount: Int = 0
        public var newCount: Int = 0
        /// Referenced files in folders that cannot be looked at now: left as they were.
        public var unknown: Int = 0
        public var changed: [String] = []
        public var moved: [Move] = []
        public var missing: [String] = []
        public var new: [String] = []
        /// Folders that cannot be read, or whose disk seems not to be mounted.
        public var unreadable: [String] = []

        public init() {}

        private static let path = JSONType<[String]>.list(of: .text(maxBytes: 8192), limit: maxPaths)

        public static let table = JSONTable(
            "Rescan",
            "What was found; each list has at most \(maxPaths) paths, the counts are of all.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("unchanged", \.unchanged, .count(0...Int.max), "Files that are what they were."),
                .required("refreshed", \.refreshed, .count(0...Int.max), "Touched files with the bytes they had."),
                .required("changedCount", \.changedCount, .count(0...Int.max), "Files with other bytes."),
                .required("movedCount", \.movedCount, .count(0...Int.max), "Files found elsewhere by their content."),
                .required("missingCount", \.missingCount, .count(0...Int.max), "Files that are nowhere."),
                .required("newCount", \.newCount, .count(0...Int.max), "Files that the library does not know."),
                .required("unknown", \.unknown, .count(0...Int.max), "Files where nobody could look."),
                .required("changed", \.changed, path, "Files with other bytes: never served."),
                .required(
                    "moved",
                    \.moved,
                    .list(of: .object(Move.self), limit: maxPaths),
                    "Files found elsewhere by their content."
                ),
                .required("missing", \.missing, path, "Files that are nowhere; their assets stay."),
                .required("new", \.new, path, "Files that the library does not know."),
                .required("unreadable", \.unreadable, path, "Folders where nobody could look."),
            ]
        )
    }
}

/// `library.collect`: removes the stored bytes that nothing refers to, without waiting for the collector.
public struct CollectLibrary: Request {
    public static let method = "library.collect"
    /// Whether they are only counted.
    public var isDryRun: Bool

    public init(isDryRun: Bool = false) { self.isDryRun = isDryRun }

    public static let table = parameters(
        "Removes stored bytes that nothing refers to; the catalog does so by itself after a while.",
        blank: CollectLibrary(),
        [.defaulted("dryRun", \.isDryRun, .flag, "Only counts them.", default: false)]
    )

    public struct Result: JSONTabled {
        public var count: Int
        public var bytes: Int64

        public init(count: Int = 0, bytes: Int64 = 0) {
            self.count = count
            self.bytes = bytes
        }

        public static let table = JSONTable(
            "Collected",
            "Stored bytes that nothing refers to.",
            unknown: .ignored,
            blank: Result(),
            [
                .required("count", \.count, .count(0...Int.max), "Files."),
                .required("bytes", \.bytes, .integer(0...Int64.max), "Their bytes."),
            ]
        )
    }
}
