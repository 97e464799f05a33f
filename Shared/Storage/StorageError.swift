import Glibc

/// What can go wrong between a service and its disk.
public enum StorageError: Error, Sendable, Equatable {
    /// The disk, the quota or the process's file size limit is used up; nothing was stored.
    case notEnoughSpace(String)
    /// The system refused or failed an operation on a file.
    case io(String)
    /// A file that is ours does not hold what we wrote.
    case corrupt(String)
    /// No bytes are stored under the digest.
    case notFound(String)
    /// The bytes are no longer those that were stored or referenced.
    case resourceChanged(String)
    /// Another process holds the lock.
    case inUse(String)
    /// More bytes than the caller allows.
    case tooLarge(String)
    /// The store was opened for reading only.
    case readOnly(String)
    /// The database stayed locked for longer than the busy timeout.
    case busy(String)
    /// A newer version of Safelight wrote the file; this one cannot read it.
    case newerVersion(String)
    /// A digest, a range or a name that cannot be valid.
    case invalid(String)

    /// The name for the wire: `not_enough_space`, `io_error`, `corrupt`, `not_found`, `resource_changed`, `in_use`,
    /// `too_large`, `read_only`, `busy`, `newer_version`, `invalid`.
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
        case .busy: "busy"
        case .newerVersion: "newer_version"
        case .invalid: "invalid"
        }
    }

    /// What happened and what to do, for people; it names files of this machine.
    public var message: String {
        switch self {
        case .notEnoughSpace(let message), .io(let message), .corrupt(let message), .notFound(let message),
            .resourceChanged(let message), .inUse(let message), .tooLarge(let message), .readOnly(let message),
            .busy(let message), .newerVersion(let message), .invalid(let message):
            message
        }
    }

    /// The error for a failed system call, from `errno` and what was tried, as in "write /library/resources/ab".
    static func system(_ number: Int32, _ action: String) -> StorageError {
        let reason = "\(action): \(String(cString: strerror(number)))"
        return switch number {
        case ENOSPC, EDQUOT, EFBIG: .notEnoughSpace("\(reason). Free some space and try again.")
        case ENOENT: .notFound(reason)
        default: .io(reason)
        }
    }
}

extension StorageError: CustomStringConvertible {
    public var description: String { "\(name): \(message)" }
}
