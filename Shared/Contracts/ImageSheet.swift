public import JSONValue
public import PhotoModel

/// `image.sheet`: a contact sheet, several assets in one image.
public struct ImageSheet: Request {
    public static let method = "image.sheet"
    /// The maximum number of assets on a sheet.
    public static let maxAssets = 400

    /// The arrangement of the images.
    public enum Layout: String, Sendable, Hashable, CaseIterable {
        /// In squares of equal size.
        case grid
        /// In rows that are filled from edge to edge.
        case justified
    }

    /// The assets, row by row.
    public var assets: [ObjectID]
    /// Images per row.
    public var columns: Int
    /// Side length of a cell, in pixels.
    public var cell: Int
    /// The arrangement of the images.
    public var layout: Layout
    /// Text below each image, in the order of `assets`; empty for the file names.
    public var labels: [String]
    /// The image with or without edits.
    public var version: ImageVersion
    /// True if originals that are in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false
    /// The service responds once it has reached this token; nil to respond at once.
    public var atLeast: ChangeToken?

    public init(
        assets: [ObjectID],
        columns: Int = 6,
        cell: Int = 256,
        layout: Layout = .grid,
        labels: [String] = [],
        version: ImageVersion = .current,
        atLeast: ChangeToken? = nil
    ) {
        self.assets = assets
        self.columns = columns
        self.cell = cell
        self.layout = layout
        self.labels = labels
        self.version = version
        self.atLeast = atLeast
    }

    public static let table = parameters(
        "A contact sheet: several assets in one image.",
        blank: ImageSheet(assets: []),
        [
            .required("assets", \.assets, .list(of: .id(.asset), limit: maxAssets), "The assets, row by row."),
            .defaulted("columns", \.columns, .count(1...40), "Images per row.", default: 6),
            .defaulted("cell", \.cell, .count(32...1024), "Side length of a cell, in pixels.", default: 256),
            .defaulted(
                "layout",
                \.layout,
                .name(Layout.self),
                "`grid`: squares. `justified`: rows as wide as `columns` cells and at most one cell high, filled by images "
                    + "of any shape.",
                default: .grid
            ),
            .defaulted(
                "labels",
                \.labels,
                .list(of: .text(maxBytes: 256), limit: maxAssets),
                "Text below each image; the file names if empty.",
                default: []
            ),
            .version(\.version),
            .networkAccess(\.isNetworkAccessAllowed),
            .atLeast(\.atLeast),
        ]
    )

    /// The description of the attached image.
    public struct Result: JSONTabled {
        /// Media type of the bytes.
        public var mimeType: String
        /// Width in pixels.
        public var pixelWidth: Int
        /// Height in pixels.
        public var pixelHeight: Int
        /// Sequence of the transaction at which it was read.
        public var sequence: Int64
        /// Reasons by id of the assets that could not be rendered; a gray field is drawn for each.
        public var failed: JSONObject

        public init(mimeType: String, pixelWidth: Int, pixelHeight: Int, sequence: Int64, failed: JSONObject = [:]) {
            self.mimeType = mimeType
            self.pixelWidth = pixelWidth
            self.pixelHeight = pixelHeight
            self.sequence = sequence
            self.failed = failed
        }

        public static let table = JSONTable(
            "Sheet",
            "Description of the attached image.",
            unknown: .ignored,
            blank: Result(mimeType: "", pixelWidth: 0, pixelHeight: 0, sequence: 0),
            [
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("pixelWidth", \.pixelWidth, .count(0...1_000_000), "Width in pixels."),
                .required("pixelHeight", \.pixelHeight, .count(0...1_000_000), "Height in pixels."),
                .sequence(\.sequence),
                .defaulted("failed", \.failed, .members, "Assets that could not be rendered, and why.", default: [:]),
            ]
        )
    }
}
