import Basics
import Glibc

/// A reference to a file outside the store, used in place of a stored copy of its bytes.
public struct FileReference: Sendable, Hashable {
    /// The absolute path of the file.
    public var path: String
    /// Its identity when its bytes were read.
    public var identity: FileIdentity
    /// The time at which a scan first did not find the file, in microseconds since 1970; nil if it was found.
    public var missingSince: Int64?

    /// Makes a reference.
    public init(path: String, identity: FileIdentity, missingSince: Int64? = nil) {
        self.path = path
        self.identity = identity
        self.missingSince = missingSince
    }

    private static let magic = "safelight-reference 1"

    /// The stored form in three parts: the magic line, a line of numbers, and the path up to the end.
    var bytes: [UInt8] {
        let numbers = "\(identity.device) \(identity.inode) \(identity.size) \(identity.modified) \(missingSince ?? 0)"
        return Array("\(Self.magic)\n\(numbers)\n\(path)".utf8)
    }

    init?(bytes: [UInt8]) {
        guard let text = String(validating: bytes, as: UTF8.self) else { return nil }
        let lines = text.split(separator: "\n", maxSplits: 2, omittingEmptySubsequences: false)
        guard lines.count == 3, lines[0] == Self.magic, lines[2].hasPrefix("/") else { return nil }
        let numbers = lines[1].split(separator: " ")
        guard numbers.count == 5, let device = UInt64(numbers[0]), let inode = UInt64(numbers[1]),
            let size = Int64(numbers[2]), let modified = Int64(numbers[3]), let missing = Int64(numbers[4])
        else { return nil }
        path = String(lines[2])
        identity = FileIdentity(device: device, inode: inode, size: size, modified: modified)
        missingSince = missing == 0 ? nil : missing
    }
}

/// The attributes by which a change of a referenced file is detected.
public struct FileIdentity: Sendable, Hashable {
    /// The device number, and the inode number on it.
    public var device: UInt64, inode: UInt64
    /// The size in bytes.
    public var size: Int64
    /// The modification time in nanoseconds since 1970.
    public var modified: Int64

    /// Makes an identity from stored values.
    public init(device: UInt64, inode: UInt64, size: Int64, modified: Int64) {
        self.device = device
        self.inode = inode
        self.size = size
        self.modified = modified
    }

    /// Reads the current identity of an open file.
    ///
    /// Throws ``StorageError`` if the system call fails.
    public init(of file: ResourceFile) throws(StorageError) {
        var status = stat()
        guard fstat(file.descriptor, &status) == 0 else { throw .system(errno, "stat") }
        let (seconds, overflow) = Int64(status.st_mtim.tv_sec).multipliedReportingOverflow(by: 1_000_000_000)
        self.init(
            device: UInt64(status.st_dev),
            inode: UInt64(status.st_ino),
            size: Int64(status.st_size),
            modified: overflow ? .max : seconds &+ Int64(status.st_mtim.tv_nsec)
        )
    }
}
