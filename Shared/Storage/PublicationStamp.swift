import Glibc

/// The modification time that a stored file gets when it is published.
///
/// The seconds are the time when the bytes were last stored. The nanoseconds are a checksum of digest, inode and size:
/// a file that was modified, replaced or marked as damaged no longer has it. This shows which files have to be compared
/// with their digests, without a table and without reading the files. On a filesystem without nanoseconds every file is
/// compared, which only takes more time.
enum PublicationStamp {
    private static let nanosecondsPerSecond: UInt64 = 1_000_000_000

    /// Returns true if, by its status, a file is the one that was published under a digest.
    static func isIntact(_ status: stat, _ digest: ResourceDigest) -> Bool {
        UInt64(bitPattern: Int64(status.st_mtim.tv_nsec)) == checkValue(digest, status)
    }

    /// Sets the stamp of a file, with the current time.
    ///
    /// Errors are ignored: a file without a stamp is compared when its bytes arrive again.
    static func set(_ path: String, _ digest: ResourceDigest) {
        guard let status = try? DirectoryOperations.status(path) else { return }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        now.tv_nsec = Int(checkValue(digest, status))
        var times = [timespec(tv_sec: 0, tv_nsec: omit), now]
        _ = utimensat(AT_FDCWD, path, &times, AT_SYMLINK_NOFOLLOW)
    }

    /// Removes the stamp of an open file, so that intact bytes that arrive later replace it.
    ///
    /// Errors are ignored (another owner, a read-only disk): the next complete read finds the damage again.
    static func remove(from descriptor: Int32, _ digest: ResourceDigest) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, isIntact(status, digest) else { return }
        var time = status.st_mtim
        time.tv_nsec = Int((checkValue(digest, status) + 1) % nanosecondsPerSecond)
        var times = [timespec(tv_sec: 0, tv_nsec: omit), time]
        _ = futimens(descriptor, &times)
    }

    // FNV-1a.
    private static func checkValue(_ digest: ResourceDigest, _ status: stat) -> UInt64 {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        func mix(_ byte: UInt8) { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
        for byte in digest.text.utf8 { mix(byte) }
        for number in [UInt64(status.st_ino), UInt64(bitPattern: Int64(status.st_size))] {
            for shift in stride(from: UInt64(0), to: 64, by: 8) { mix(UInt8(truncatingIfNeeded: number >> shift)) }
        }
        return hash % nanosecondsPerSecond
    }

    /// `UTIME_OMIT` of `utimensat(2)`, a macro that is not imported into Swift.
    static let omit = (1 << 30) - 2
}

/// The attributes of a file that change whenever it is replaced or written to.
struct FileState: Equatable {
    private let inode: UInt64, size: Int64
    private let modified: Int64, changed: Int64

    init(_ status: stat) {
        inode = UInt64(status.st_ino)
        size = Int64(status.st_size)
        modified = Self.nanoseconds(status.st_mtim)
        changed = Self.nanoseconds(status.st_ctim)
    }

    private static func nanoseconds(_ time: timespec) -> Int64 {
        Int64(time.tv_sec) &* 1_000_000_000 &+ Int64(time.tv_nsec)
    }
}
