public import JSONValue
import PhotoModel

/// `quarantine.lift`: removes bytes from the quarantine; for the owner.
public struct LiftQuarantine: Request {
    public static let method = "quarantine.lift"
    /// SHA-256 of the bytes; nil for all entries.
    public var digest: String?

    public init(digest: String?) { self.digest = digest }

    public static let table = parameters(
        "Removes bytes from the quarantine and resets their failure counts.",
        blank: LiftQuarantine(digest: nil),
        [.optional("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the bytes; absent: all entries.")]
    )

    public struct Result: JSONTabled {
        /// Number of bytes that were quarantined.
        public var lifted: Int
        public init(lifted: Int) { self.lifted = lifted }
        public static let table = JSONTable(
            "QuarantineLifted",
            "Number of entries that were removed.",
            unknown: .ignored,
            blank: Result(lifted: 0),
            [.required("lifted", \.lifted, .count(0...Int.max), "Number of bytes that were quarantined.")]
        )
    }
}
