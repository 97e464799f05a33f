public import JSONValue
public import PhotoModel

/// `library.backup`: copies the database at one sequence and all bytes that it refers to.
///
/// A DEALER client gets `library.progress {done, total}` notifications.
public struct BackupLibrary: Request {
    public static let method = "library.backup"
    /// The notification about the progress.
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
        "Backs up the library. A repeated backup to the same folder copies only what is new. Damaged files do not end "
            + "it; the result names them.",
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

    /// A file that is damaged or missing in the library.
    public struct DamagedFile: Sendable, Hashable, JSONTabled {
        /// SHA-256 of the imported bytes.
        public var digest: String
        /// An asset to which it belongs.
        public var asset: ObjectID?
        /// Its name when it was imported.
        public var filename: String?
        /// True if the backup has an intact copy, from an earlier backup.
        public var isInBackup: Bool

        public init(digest: String, asset: ObjectID? = nil, filename: String? = nil, isInBackup: Bool) {
            self.digest = digest
            self.asset = asset
            self.filename = filename
            self.isInBackup = isInBackup
        }

        public static let table = JSONTable(
            "DamagedFile",
            "A file that is damaged or missing in the library.",
            unknown: .ignored,
            blank: DamagedFile(digest: "", isInBackup: false),
            [
                .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the imported bytes."),
                .optional("asset", \.asset, .id(.asset), "An asset to which it belongs."),
                .optional(
                    "filename",
                    \.filename,
                    .text(maxBytes: 3 * TextLimit.filename),
                    "Its name when it was imported."
                ),
                .required("isInBackup", \.isInBackup, .flag, "An intact copy is there from an earlier backup."),
            ]
        )
    }

    /// The numbers of a backup.
    public struct Result: JSONTabled {
        /// The maximum number of files that are named in a result.
        public static let maxDamagedFiles = 1000
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
        /// Resources in remote storage only; they are listed but not copied.
        public var remote: Int = 0
        /// Resources removed from the earlier backup because the library no longer has them.
        public var removed: Int = 0
        /// Number of files that are damaged or missing in the library. The backup lacks those of which it has no copy
        /// from an earlier backup.
        public var damaged: Int = 0
        /// The first of these files, at most ``maxDamagedFiles``.
        public var damagedFiles: [DamagedFile] = []

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
                .defaulted("remote", \.remote, .count(0...Int.max), "In remote storage only, not copied.", default: 0),
                .required("removed", \.removed, .count(0...Int.max), "Removed from the earlier backup."),
                .defaulted(
                    "damaged",
                    \.damaged,
                    .count(0...Int.max),
                    "Damaged or missing in the library; the backup has all other files.",
                    default: 0
                ),
                .defaulted(
                    "damagedFiles",
                    \.damagedFiles,
                    .list(of: .object(DamagedFile.self), limit: maxDamagedFiles),
                    "The first of the damaged files.",
                    default: []
                ),
            ]
        )
    }
}
