import Contracts
import Hosting
import Imaging
import JSONValue
import Metadata
import PhotoModel
import Storage

/// A render to be made by a worker.
struct RenderPlan: Sendable, Equatable, JSONTabled {
    /// SHA-256 of the image that the operations apply to.
    var digest: String
    /// The adjustment list as JSON.
    var adjustments: JSON
    /// The longer side of a preview, in pixels; nil for the full size, with metadata.
    var maximumSide: Int?
    var engine: RenderEngine

    init(digest: String, adjustments: AdjustmentList, maximumSide: Int? = nil, engine: RenderEngine = .fused) {
        self.digest = digest
        self.adjustments = adjustments.json
        self.maximumSide = maximumSide
        self.engine = engine
    }

    static let table = JSONTable(
        "RenderPlan",
        "A render to make.",
        unknown: .refused,
        blank: RenderPlan(digest: "", adjustments: AdjustmentList()),
        [
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the source."),
            .required("adjustments", \.adjustments, .any, "The adjustments."),
            .optional("maximumSide", \.maximumSide, .count(1...65_500), "The longer side of a preview."),
            .defaulted("engine", \.engine, .name(RenderEngine.self), "The engine that renders.", default: .fused),
        ]
    )
}
