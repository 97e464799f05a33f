/// The kinds of failure of an object store. The raw values are their names in the status and the log.
public enum ObjectStoreProblem: String, Sendable, CaseIterable {
    /// The settings are not valid.
    case invalidSettings = "invalid_settings"
    /// No connection, or no progress for too long.
    case unreachable
    /// The certificate is not trusted.
    case untrustedCertificate = "untrusted_certificate"
    /// The access key is unknown, its secret is wrong, or it lacks the permission.
    case accessDenied = "access_denied"
    /// The clocks of this machine and of the store differ too much.
    case clockSkew = "clock_skew"
    /// The bucket does not exist.
    case noBucket = "no_bucket"
    /// The store or its quota is full.
    case storeFull = "store_full"
    /// The store reports an overload or an internal failure.
    case storeBusy = "store_busy"
    /// The object does not exist.
    case noObject = "no_object"
    /// The object to be created already exists.
    case objectExists = "object_exists"
    /// Fewer bytes arrived than the object has.
    case truncated
    /// The bytes of the object are not those that were uploaded.
    case objectDamaged = "object_damaged"
    /// The local file does not have the bytes of its digest.
    case fileDamaged = "file_damaged"
    /// A response of another kind.
    case unexpectedReply = "unexpected_reply"
    /// The transfer was cancelled.
    case cancelled

    /// True if the same request may succeed later.
    var isTransient: Bool {
        switch self {
        case .unreachable, .storeBusy, .truncated: true
        default: false
        }
    }

    /// True if the failure concerns one object; other objects can be transferred.
    public var concernsObject: Bool {
        switch self {
        case .noObject, .objectExists, .truncated, .objectDamaged, .fileDamaged, .cancelled: true
        default: false
        }
    }
}

/// A failed request to an object store.
public struct ObjectStoreError: Error, Sendable, Equatable, CustomStringConvertible {
    public let problem: ObjectStoreProblem
    /// A description for people: the problem and its remedy. It has no secrets.
    public let message: String

    public init(_ problem: ObjectStoreProblem, _ message: String) {
        self.problem = problem
        self.message = message
    }

    static func invalid(_ message: String) -> Self { Self(.invalidSettings, message) }

    public var description: String { "\(problem.rawValue): \(message)" }
}
