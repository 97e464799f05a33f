public import JSONValue

/// An edit that is applied to a new asset: `PHContentEditingOutput(placeholderForCreatedAsset:)` (T-22).
public struct NewEdit: Sendable, Hashable, JSONTabled {
    /// The rendered image with orientation applied.
    public var render: NewResource
    /// The description of the edit.
    public var adjustmentData: AdjustmentData

    public init(render: NewResource, adjustmentData: AdjustmentData) {
        self.render = render
        self.adjustmentData = adjustmentData
    }

    public static let table = JSONTable(
        "NewEdit",
        "An edit that is applied to a new asset.",
        unknown: .refused,
        blank: NewEdit(
            render: NewResource(source: .path("")),
            adjustmentData: AdjustmentData(formatIdentifier: "", formatVersion: "", attachment: 0)
        ),
        [
            .required(
                "render",
                \.render,
                .object(NewResource.self),
                "The rendered image with its orientation applied."
            ),
            .required("adjustmentData", \.adjustmentData, .object(AdjustmentData.self), "The description of the edit."),
        ]
    )
}
