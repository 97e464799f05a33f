public import JSONValue
public import PhotoModel

/// `resource.supports`: whether an asset can be created from files of some types (T-20).
public struct SupportsResources: Request {
    public static let method = "resource.supports"
    /// One type for each file.
    public var types: [ResourceType]

    public init(types: [ResourceType]) { self.types = types }

    public static let table = parameters(
        "Checks that a new asset can have resources of these types.",
        blank: SupportsResources(types: []),
        [.required("types", \.types, .list(of: .name(ResourceType.self), limit: 64), "One type for each file.")]
    )

    /// The result of the check.
    public struct Result: JSONTabled {
        /// True if an asset can be created from them.
        public var isSupported: Bool

        public init(isSupported: Bool) { self.isSupported = isSupported }

        public static let table = JSONTable(
            "Supported",
            "The result of the check.",
            unknown: .ignored,
            blank: Result(isSupported: false),
            [.required("isSupported", \.isSupported, .flag, "True if an asset can be created from them.")]
        )
    }
}
