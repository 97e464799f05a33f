public import JSONValue

/// `ids.toLocal`: the entities of this library that have some cloud identifiers:
/// `localIdentifierMappings(forCloudIdentifiers:)` (T-39).
public struct IDsToLocal: Request {
    public static let method = "ids.toLocal"
    /// Identifiers that `ids.toCloud` returned, here or in another copy of the library.
    public var cloudIDs: [String]

    public init(cloudIDs: [String]) { self.cloudIDs = cloudIDs }

    public static let table = parameters(
        "The entities of this library that have some identifiers of ids.toCloud, of this or another copy of the library.",
        blank: IDsToLocal(cloudIDs: []),
        [
            .required(
                "cloudIds",
                \.cloudIDs,
                .list(of: .text(maxBytes: 128), limit: CloudMappings.maxCount),
                "Identifiers that ids.toCloud returned."
            )
        ]
    )

    public typealias Result = CloudMappings
}
