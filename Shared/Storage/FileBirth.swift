import CProcess
import Glibc

/// The identity of a file, independent of its path; a copy has a different one.
///
/// Files are compared by inode and birth time. The device number is compared only if the filesystem has no birth times,
/// because it may change with the next mount. On Btrfs a snapshot repeats inodes and birth times, so the subvolume is
/// compared too. A disk or virtual machine that was reset to a snapshot as a whole cannot be detected.
struct FileBirth: Sendable, Equatable {
    var inode: UInt64
    /// Birth time in nanoseconds since 1970; 0 if unknown.
    var birth: Int64
    var device: UInt64
    /// The Btrfs subvolume; 0 on other filesystems.
    var volume: UInt64

    init(inode: UInt64, birth: Int64, device: UInt64, volume: UInt64) {
        self.inode = inode
        self.birth = birth
        self.device = device
        self.volume = volume
    }

    /// Reads the identity of the file at a path.
    init(path: String) throws(StorageError) {
        self.init(inode: 0, birth: 0, device: 0, volume: 0)
        guard safelight_file_birth(path, &inode, &birth, &device, &volume) == 0 else {
            throw .system(errno, "stat \(path)")
        }
    }

    func isSameFile(as other: FileBirth) -> Bool {
        guard inode == other.inode, volume == other.volume else { return false }
        return birth != 0 && other.birth != 0 ? birth == other.birth : device == other.device
    }

    /// The stored form: 32 bytes, four little-endian numbers.
    var bytes: [UInt8] {
        [inode, UInt64(bitPattern: birth), device, volume].flatMap { number in
            (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
        }
    }

    /// Decodes the stored form; nil for zeros, which mean no file.
    init?(bytes: ArraySlice<UInt8>) {
        guard bytes.count == 32, bytes.contains(where: { $0 != 0 }) else { return nil }
        let numbers = (0..<4).map { index in
            bytes.dropFirst(index * 8).prefix(8).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
        }
        self.init(
            inode: numbers[0],
            birth: Int64(bitPattern: numbers[1]),
            device: numbers[2],
            volume: numbers[3]
        )
    }
}
