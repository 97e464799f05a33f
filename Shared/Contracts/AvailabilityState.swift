/// The states of a library: available, or a reason why it is not (T-42).
public enum AvailabilityState: String, Sendable, Hashable, CaseIterable {
    /// It can be read and written.
    case available
    /// The disk or volume of the library's folder is missing, or its database server does not answer.
    case offline
    /// The library's folder was moved, renamed or deleted.
    case relinquished
    /// Another library is being put into the library's folder, for example by a restore.
    case switching
    /// The library can be read only: its folder cannot be written, or only a replica of its database answers.
    case readOnly
    /// The disk of the folder is full.
    case full
    /// Another program has locked the database.
    case busy
    /// The object store with the originals that are not on this machine does not answer.
    case storeOffline
    /// The catalog does not answer the change-broker.
    case unreachable

    /// The error of requests that the state affects; nil if the library is available.
    public var error: ErrorCode? {
        switch self {
        case .available: nil
        case .offline: .libraryOffline
        case .relinquished: .libraryRelinquished
        case .switching: .librarySwitching
        case .readOnly: .libraryReadOnly
        case .full: .notEnoughSpace
        case .busy: .busy
        case .storeOffline: .networkError
        case .unreachable: .unavailable
        }
    }

    /// True if photos, albums and the history can be read.
    public var isReadable: Bool {
        switch self {
        case .offline, .relinquished, .switching, .unreachable: false
        case .available, .readOnly, .full, .busy, .storeOffline: true
        }
    }

    /// True if changes are accepted.
    public var isWritable: Bool {
        switch self {
        case .available, .storeOffline: true
        default: false
        }
    }
}
