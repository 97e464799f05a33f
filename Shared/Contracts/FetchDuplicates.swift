public import JSONValue
public import PhotoModel

/// `fetch.duplicates`: assets whose files have the same image data, and differ in their metadata at most.
///
/// It examines the current state of the library, without the assets in the trash.
public struct FetchDuplicates: Request {
    public static let method = "fetch.duplicates"
    /// The position of the page: `next` of the page before; nil for the first page.
    public var after: String?
    /// The number of groups that are examined.
    public var limit: Int
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(after: String? = nil, limit: Int = 100, atLeast: ChangeToken? = nil) {
        self.after = after
        self.limit = limit
        self.atLeast = atLeast
    }

    /// The maximum of ``limit``.
    public static let maxLimit = 1000
    /// The maximum number of assets that are listed for a group.
    public static let maxAssets = 1000

    public static let table = parameters(
        "Lists assets with the same image: files whose image data are equal, also if other programs have written metadata "
            + "into them.",
        blank: FetchDuplicates(),
        [
            .optional("after", \.after, .text(maxBytes: 64), "Position of the page: next of the page before."),
            .defaulted("limit", \.limit, .count(1...maxLimit), "Maximum number of groups in the page.", default: 100),
            .atLeast(\.atLeast),
        ]
    )

    /// Assets with the same image.
    public struct Group: JSONTabled, Hashable {
        /// SHA-256 of the image data, in hexadecimal.
        public var imageDigest: String
        /// At least two, in the order of their import.
        public var assets: [ObjectID]

        public init(imageDigest: String, assets: [ObjectID]) {
            self.imageDigest = imageDigest
            self.assets = assets
        }

        public static let table = JSONTable(
            "DuplicateGroup",
            "Assets with the same image.",
            unknown: .ignored,
            blank: Group(imageDigest: "", assets: []),
            [
                .required("imageDigest", \.imageDigest, .text(maxBytes: 64), "SHA-256 of the image data."),
                .required(
                    "assets",
                    \.assets,
                    .list(of: .id(.asset), limit: maxAssets),
                    "In the order of their import."
                ),
            ]
        )
    }

    /// A page of groups of assets with the same image.
    public struct Result: JSONTabled {
        /// Token of the result.
        public var token: ChangeToken
        /// The groups of the page, in the order of their digests.
        public var groups: [Group]
        /// The position of the next page; nil after the last one. A page with it may be empty.
        public var next: String?

        public init(token: ChangeToken, groups: [Group] = [], next: String? = nil) {
            self.token = token
            self.groups = groups
            self.next = next
        }

        public static let table = JSONTable(
            "Duplicates",
            "Groups of assets with the same image.",
            unknown: .ignored,
            blank: Result(token: .none),
            [
                .required("token", \.token, .token, "Token of the result."),
                .required("groups", \.groups, .list(of: .object(Group.self), limit: maxLimit), "The groups."),
                .optional("next", \.next, .text(maxBytes: 64), "Position of the next page; absent after the last."),
            ]
        )
    }
}
