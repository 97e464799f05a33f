public import JSONValue
public import PhotoModel

/// `edits.describe`: an adjustment list as a file for other programs.
public struct DescribeEdit: Request {
    public static let method = "edits.describe"

    /// A form of an adjustment list.
    public enum Form: String, Sendable, CaseIterable {
        /// The colour operations as a .cube file of 33 points.
        case cube
        /// The colour operations as a HALD CLUT of level 8, a PNG of 16 bits.
        case hald
        /// The whole list as a shell script with one command of ImageMagick's program `convert`.
        case convert
    }

    /// The asset; nil for the colours of `adjustments`.
    public var asset: ObjectID?
    /// The list; nil for that of the asset's edit.
    public var adjustments: AdjustmentList?
    /// The form.
    public var form: Form
    /// True if an original that is in remote storage may be downloaded.
    public var isNetworkAccessAllowed = false

    public init(asset: ObjectID? = nil, adjustments: AdjustmentList? = nil, as form: Form) {
        self.asset = asset
        self.adjustments = adjustments
        self.form = form
    }

    public static let table = parameters(
        "Writes adjustments as a file for other programs: their colours as a look-up table, or all of them as a command of "
            + "ImageMagick's program convert.",
        blank: DescribeEdit(as: .cube),
        [
            .optional(
                "asset",
                \.asset,
                .id(.asset),
                "The asset; needed for convert, whose numbers depend on its size."
            ),
            .optional(
                "adjustments",
                \.adjustments,
                .adjustments,
                "The operations. Default: those of the asset's edit."
            ),
            .required(
                "as",
                \.form,
                .name(Form.self),
                "cube: a .cube file of the colour operations; hald: a HALD CLUT of them, PNG; convert: a shell script of all "
                    + "operations, called with the names of input and output."
            ),
            .networkAccess(\.isNetworkAccessAllowed),
        ]
    )

    /// The description of the attached file.
    public struct Result: JSONTabled {
        /// Media type of the bytes.
        public var mimeType: String
        /// A name for the file.
        public var filename: String

        public init(mimeType: String, filename: String) {
            self.mimeType = mimeType
            self.filename = filename
        }

        public static let table = JSONTable(
            "EditDescription",
            "Description of the attached file.",
            unknown: .ignored,
            blank: Result(mimeType: "", filename: ""),
            [
                .required("mimeType", \.mimeType, .text(maxBytes: 64), "Media type of the bytes."),
                .required("filename", \.filename, .text(maxBytes: 64), "A name for the file."),
            ]
        )
    }
}
