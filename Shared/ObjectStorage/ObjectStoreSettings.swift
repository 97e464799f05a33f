/// The limits of the transport to an object store.
public struct ObjectStoreSettings: Sendable, Equatable {
    /// A file with the certificates of the trusted authorities, in PEM; nil for those of the system.
    public var certificateFile: String?
    /// The time limit for connecting, in seconds.
    public var connectSeconds = 10
    /// The seconds without a byte after which a transfer fails.
    public var stallSeconds = 30
    /// The maximum rate of one upload in bytes per second; 0 for no limit.
    public var bytesPerSecond: Int64 = 0
    /// The maximum number of attempts of one request.
    public var attempts = 4
    /// The size in bytes above which an object is uploaded in parts, and of each part.
    public var partBytes: Int64 = 64 << 20

    public init() {}
}
