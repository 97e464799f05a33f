public import JSONValue

/// A request to upload a resource to the object store, or to download it from there, that is kept until its outcome is
/// acknowledged: `PHAssetResourceUploadJob` (T-34).
public struct UploadJob: Sendable, Hashable, JSONTabled {
    /// PhotoKit's `PHAssetResourceUploadJobState`.
    public enum State: String, NumberedName {
        case registered, pending, failed, succeeded, cancelled

        public var number: Int {
            switch self {
            case .registered: 1
            case .pending: 2
            case .failed: 3
            case .succeeded: 4
            case .cancelled: 5
            }
        }

        /// True if the job has ended.
        public var isFinal: Bool { self != .registered && self != .pending }
    }

    /// PhotoKit's `PHAssetResourceUploadJobType`.
    public enum Kind: String, NumberedName {
        case upload, downloadOnly

        public var number: Int { self == .upload ? 0 : 1 }
    }

    /// PhotoKit's `PHAssetResourceUploadJobAction`, and `cancel`.
    public enum Action: String, CaseIterable, Sendable {
        case acknowledge, retry, cancel
    }

    /// The number of the job. It increases with each job, and none is used twice.
    public var id: Int64
    /// The asset.
    public var asset: ObjectID
    /// Type of the resource.
    public var resourceType: ResourceType
    /// SHA-256 of the resource's bytes, in hexadecimal.
    public var digest: String
    /// Upload, or download only.
    public var kind: Kind
    /// The state.
    public var state: State
    /// True if it was retried; a job is retried once.
    public var isRetried: Bool
    /// The time of the last change of the state, in microseconds since 1970.
    public var date: Int64
    /// The identity that created it; nil for jobs of earlier versions.
    public var identity: String?
    /// The fraction of the bytes that was transferred, 0…1; nil if no transfer runs.
    public var progress: Double?
    /// The name of the failure; nil if it has not failed.
    public var problem: String?
    /// The failure in words; nil if it has not failed.
    public var message: String?

    public init(
        id: Int64,
        asset: ObjectID,
        resourceType: ResourceType = .photo,
        digest: String = "",
        kind: Kind = .upload,
        state: State = .registered,
        isRetried: Bool = false,
        date: Int64 = 0,
        identity: String? = nil,
        problem: String? = nil,
        message: String? = nil
    ) {
        self.id = id
        self.asset = asset
        self.resourceType = resourceType
        self.digest = digest
        self.kind = kind
        self.state = state
        self.isRetried = isRetried
        self.date = date
        self.identity = identity
        self.problem = problem
        self.message = message
    }

    /// The maximum number of jobs of an identity that are not acknowledged: PhotoKit's `jobLimit`.
    public static let limit = 1000
    /// The maximum number of jobs of all identities together.
    public static let totalLimit = 10_000

    /// Returns true if an action is possible: acknowledging a job that has ended, retrying one that has failed and was
    /// not retried before, cancelling one that has not ended.
    public func allows(_ action: Action) -> Bool {
        switch action {
        case .acknowledge: state.isFinal
        case .retry: state == .failed && !isRetried
        case .cancel: !state.isFinal
        }
    }

    public static let table = JSONTable(
        "UploadJob",
        "An upload or download of a resource that is kept until it is acknowledged.",
        unknown: .ignored,
        blank: UploadJob(id: 0, asset: .none),
        [
            .required("id", \.id, .integer(0...Int64.max), "Number of the job."),
            .required("asset", \.asset, .id(.asset), "The asset."),
            .required("resourceType", \.resourceType, .name(ResourceType.self), "Type of the resource."),
            .required("digest", \.digest, .text(maxBytes: 64), "SHA-256 of the resource."),
            .required("type", \.kind, .name(Kind.self), "Upload, or download only."),
            .derived("typeNumber", { $0.kind.number }, .count(0...1), "PhotoKit's number of the type."),
            .required("state", \.state, .name(State.self), "State of the job."),
            .derived("stateNumber", { $0.state.number }, .count(1...5), "PhotoKit's number of the state."),
            .required("isRetried", \.isRetried, .flag, "True if it was retried."),
            .required("date", \.date, .date(), "Date of the state, in microseconds since 1970."),
            .optional("identity", \.identity, .text(maxBytes: 512), "The identity that created it."),
            .optional("progress", \.progress, .number(0...1), "The part that was transferred, while a transfer runs."),
            .optional("problem", \.problem, .text(maxBytes: 64), "Name of the failure."),
            .optional("message", \.message, .text(maxBytes: 2048), "The failure in words."),
        ]
    )
}
