import Glibc

/// An error of a library's files or database.
public enum StorageError: Error, Sendable, Equatable {
    /// The disk, the quota or the process's file size limit is exhausted; nothing was stored.
    case notEnoughSpace(String)
    /// A system call on a file failed.
    case io(String)
    /// A file of Safelight does not contain what was written to it.
    case corrupt(String)
    /// No bytes are stored under the digest, or the file does not exist.
    case notFound(String)
    /// The bytes are no longer those that were stored or referenced.
    case resourceChanged(String)
    /// Another process holds the lock.
    case inUse(String)
    /// The bytes exceed the caller's limit.
    case tooLarge(String)
    /// The store was opened for reading only, or its filesystem cannot be written.
    case readOnly(String)
    /// The disk of the files is not mounted, or does not answer.
    case offline(String)
    /// The database server does not answer.
    case serverOffline(String)
    /// The files were moved, renamed or deleted.
    case relinquished(String)
    /// The database stayed locked for longer than the busy timeout.
    case busy(String)
    /// The file was written by a newer version of Safelight, which this one cannot read.
    case newerVersion(String)
    /// A digest, range, path or name is invalid.
    case invalid(String)

    /// The name on the wire: `not_enough_space`, `io_error`, `corrupt`, `not_found`, `resource_changed`, `in_use`,
    /// `too_large`, `read_only`, `offline`, `relinquished`, `busy`, `newer_version`, `invalid`.
    public var name: String {
        switch self {
        case .notEnoughSpace: "not_enough_space"
        case .io: "io_error"
        case .corrupt: "corrupt"
        case .notFound: "not_found"
        case .resourceChanged: "resource_changed"
        case .inUse: "in_use"
        case .tooLarge: "too_large"
        case .readOnly: "read_only"
        case .offline, .serverOffline: "offline"
        case .relinquished: "relinquished"
        case .busy: "busy"
        case .newerVersion: "newer_version"
        case .invalid: "invalid"
        }
    }

    /// True if the files or the database cannot be reached now; the same request succeeds when they are available
    /// again.
    public var isAbsence: Bool {
        switch self {
        case .offline, .serverOffline, .relinquished: true
        default: false
        }
    }

    /// A description for people: the problem and its remedy; it contains paths of this machine.
    public var message: String {
        switch self {
        case .notEnoughSpace(let message), .io(let message), .corrupt(let message), .notFound(let message),
            .resourceChanged(let message), .inUse(let message), .tooLarge(let message), .readOnly(let message),
            .offline(let message), .serverOffline(let message), .relinquished(let message), .busy(let message),
            .newerVersion(let message), .invalid(let message):
            message
        }
    }

    /// Makes the error for a failed system call from `errno` and the action, for example "write /library/resources/ab".
    static func system(_ number: Int32, _ action: String) -> StorageError {
        let reason = "\(action): \(String(cString: strerror(number)))"
        return switch number {
        case ENOSPC, EDQUOT, EFBIG: .notEnoughSpace("\(reason). Free some space and try again.")
        case ENOENT: .notFound(reason)
        case EROFS: .readOnly("\(reason). Mount the filesystem for writing.")
        default: .io(reason)
        }
    }
}

extension StorageError: CustomStringConvertible {
    /// The name and the message, for logs.
    public var description: String { "\(name): \(message)" }
}
