public import JSONValue
public import PhotoModel

/// The result of `fetch.assets` and `fetch.objects`.
public struct AssetPage: ResultPage {
    public var token: ChangeToken
    public var sequence: Int64
    public var count: Int
    /// The assets.
    public var assets: [Asset]
    /// Requested identifiers that no asset has (T-01).
    public var missing: [ObjectID]
    /// Requested identifiers of assets in the trash, which are not among the assets.
    public var trashed: [ObjectID] = []
    /// Quarantined bytes of the page's assets: workers crashed or hung while reading them.
    public var quarantined: [QuarantinedResource]

    public init(
        token: ChangeToken,
        count: Int,
        assets: [Asset],
        missing: [ObjectID] = [],
        quarantined: [QuarantinedResource] = []
    ) {
        self.token = token
        self.sequence = token.sequence
        self.count = count
        self.assets = assets
        self.missing = missing
        self.quarantined = quarantined
    }

    /// Returns the quarantine entry for bytes of one of the page's assets; nil if they are not quarantined.
    public func quarantine(of digest: String) -> QuarantinedResource? {
        quarantined.first { $0.digest == digest }
    }

    /// Returns the JSON text of the page in pieces.
    ///
    /// - Parameters:
    ///   - form: the form of the objects besides the assets
    ///   - assets: the text of the assets, separated by commas, which take the place of ``assets``
    public func encoded(_ form: ObjectForm, assets: [UInt8]) -> [[UInt8]] {
        var head = JSONWriter()
        var tail = JSONWriter()
        var isBefore = true
        for (name, value) in form.applied(to: json).objectValue?.members ?? [] {
            if name == "assets" {
                isBefore = false
            } else if isBefore {
                head.append(head.count == 0 ? "{" : ",")
                head.writeMember(name, value)
            } else {
                tail.append(",")
                tail.writeMember(name, value)
            }
        }
        head.append(",\"assets\":[")
        return [head.output, assets, Array("]".utf8) + tail.output + Array("}".utf8)]
    }

    public static let method = "fetch.assets"
    public static let request = FetchAssets.parameters(
        "A page of the assets of a fetch result.",
        of: .assets,
        "assets",
        members: Asset.table.fields.map(\.name)
    )

    public static let table = JSONTable(
        "AssetPage",
        "A page of assets.",
        unknown: .ignored,
        blank: AssetPage(token: .none, count: 0, assets: []),
        ofResult + [
            .required("assets", \.assets, .list(of: .object(Asset.self), limit: ObjectForm.maxIDs), "The assets."),
            .defaulted(
                "missing",
                \.missing,
                .list(of: .id(), limit: 10_000),
                "Requested identifiers that no asset has.",
                default: []
            ),
            .defaulted(
                "trashed",
                \.trashed,
                .list(of: .id(), limit: 10_000),
                "Requested identifiers of assets in the trash; a fetch with inTrash returns them.",
                default: []
            ),
            .defaulted(
                "quarantined",
                \.quarantined,
                .list(of: .object(QuarantinedResource.self), limit: 100_000),
                "Quarantined bytes of these assets, and why.",
                default: []
            ),
        ]
    )
}
