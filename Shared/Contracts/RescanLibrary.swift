public import JSONValue
import PhotoModel

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

    /// The differences between the referenced files and the disk. Each list has at most ``maxPaths`` paths; the numbers
    /// are complete.
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
