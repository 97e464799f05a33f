import Contracts
import Imaging
import JSONValue
import PhotoModel

/// A contact sheet to draw from rendered images.
struct ContactSheetPlan: Sendable, Equatable, JSONTabled {
    var columns: Int
    /// The side of a cell, in pixels.
    var cell: Int
    var layout = ImageSheet.Layout.grid
    /// One label for each cell.
    var labels: [String]
    /// The length of each cell's image in the attachment, in bytes; 0 for a cell without an image.
    var lengths: [Int]
    /// The reason why each cell has no image; empty for a cell with an image.
    var problems: [String] = []

    /// The maximum number of pixels of a sheet. A larger one would not fit into a response.
    static let maxArea = 60_000_000

    static let table = JSONTable(
        "SheetPlan",
        "A contact sheet to draw.",
        unknown: .refused,
        blank: ContactSheetPlan(columns: 1, cell: 16, labels: [], lengths: []),
        [
            .required("columns", \.columns, .count(1...100), "Images in a row."),
            .required("cell", \.cell, .count(16...2048), "Side of a cell, in pixels."),
            .defaulted("layout", \.layout, .name(ImageSheet.Layout.self), "Arrangement.", default: .grid),
            .required("labels", \.labels, .list(of: .text(maxBytes: 4096), limit: ImageSheet.maxAssets), "Labels."),
            .required(
                "lengths",
                \.lengths,
                .list(of: .count(0...Int.max), limit: ImageSheet.maxAssets),
                "Bytes of each image."
            ),
            .defaulted(
                "problems",
                \.problems,
                .list(of: .text(maxBytes: 256), limit: ImageSheet.maxAssets),
                "The reason why a cell has no image.",
                default: []
            ),
        ]
    )

    /// Checks the options that do not depend on the assets.
    static func check(_ sheet: ImageSheet) throws(RPCError) {
        guard !sheet.assets.isEmpty else {
            throw .emptySheet
        }
        guard sheet.labels.isEmpty || sheet.labels.count == sheet.assets.count else {
            throw .wrongLabels(sheet.labels.count, assets: sheet.assets.count)
        }
        let columns = min(sheet.columns, sheet.assets.count)
        let rows = (sheet.assets.count + sheet.columns - 1) / sheet.columns
        guard columns * rows * sheet.cell * sheet.cell <= maxArea else {
            throw .sheetTooLarge(columns: columns, rows: rows, cell: sheet.cell, limit: maxArea)
        }
    }

    /// Returns the request for the image of a cell, which is never enlarged. In a justified row only the height is
    /// given.
    static func image(_ asset: ObjectID, in sheet: ImageSheet) -> ImageRequest {
        let width = sheet.layout == .grid ? sheet.cell : Int(Double(sheet.cell) * ContactSheet.maxAspectRatio)
        return ImageRequest(
            asset: asset,
            targetSize: .size(width: width, height: sheet.cell),
            contentMode: .aspectFit,
            resizeMode: .fast,
            version: sheet.version,
            quality: 85
        )
    }
}
