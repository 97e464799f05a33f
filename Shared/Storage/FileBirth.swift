import CProcess
import Glibc

/// Which file is meant, whatever its path is: a copy of it is another one.
///
/// Inode and time of birth say it. The device is compared only where the filesystem keeps no time of birth: the number
/// of a volume may be another one after the next mount. On Btrfs a snapshot repeats inodes and births, and the
/// subvolume is compared too. A whole disk or virtual machine that is put back to a snapshot cannot be told.
struct FileBirth: Sendable, Equatable {
    var inode: UInt64
    /// Nanoseconds since 1970; 0: unknown.
    var birth: Int64
    var device: UInt64
    /// The Btrfs subvolume; 0 elsewhere.
    var volume: UInt64

    init(inode: UInt64, birth: Int64, device: UInt64, volume: UInt64) {
        self.inode = inode
        self.birth = birth
        self.device = device
        self.volume = volume
    }

    /// The file at a path.
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

    /// As it stands in a file: 32 bytes.
    var bytes: [UInt8] {
        [inode, UInt64(bitPattern: birth), device, volume].flatMap { number in
            (0..<8).map { UInt8(truncatingIfNeeded: number >> UInt64($0 * 8)) }
        }
    }

    /// Nil for zeros, which are no file.
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
