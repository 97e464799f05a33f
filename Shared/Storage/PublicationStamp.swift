import Glibc

/// The modification time that a stored file gets when it is published.
///
/// The seconds say when the bytes were last stored. The nanoseconds are a check value of digest, inode and size: a file
/// that was written to, replaced by another one or marked as damaged does not have it any more. So it is known, without
/// a table and without reading the file, which files have to be compared with their digests. A filesystem that keeps no
/// nanoseconds loses nothing but time: every file is compared then.
enum PublicationStamp {
    private static let second: UInt64 = 1_000_000_000

    /// Whether a file is still the one that was published under a digest, as far as its status says.
    static func isIntact(_ status: stat, _ digest: ResourceDigest) -> Bool {
        UInt64(bitPattern: Int64(status.st_mtim.tv_nsec)) == checkValue(digest, status)
    }

    /// Stamps a file with the present time.
    ///
    /// Where that is not possible the file is without a stamp, and is compared when its bytes arrive again.
    static func set(_ path: String, _ digest: ResourceDigest) {
        guard let status = try? Folder.status(path) else { return }
        var now = timespec()
        clock_gettime(CLOCK_REALTIME, &now)
        now.tv_nsec = Int(checkValue(digest, status))
        var times = [timespec(tv_sec: 0, tv_nsec: omit), now]
        _ = utimensat(AT_FDCWD, path, &times, AT_SYMLINK_NOFOLLOW)
    }

    /// Takes the stamp off an open file, so that good bytes that arrive later replace it.
    ///
    /// Who may not (another user, a disk mounted for reading) leaves it: reading it whole finds the damage again.
    static func remove(from descriptor: Int32, _ digest: ResourceDigest) {
        var status = stat()
        guard fstat(descriptor, &status) == 0, isIntact(status, digest) else { return }
        var time = status.st_mtim
        time.tv_nsec = Int((checkValue(digest, status) + 1) % second)
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
        return hash % second
    }

    /// `UTIME_OMIT` of `utimensat(2)`, a macro that Swift does not see.
    private static let omit = (1 << 30) - 2
}

/// What of a file's status changes whenever the file is replaced or written to.
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
