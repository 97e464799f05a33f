import Glibc
import SystemPackage

/// Collects small files into groups. The files of a group are imported in one transaction, so that they share a
/// message, a job and a commit.
struct ImportGroups {
    /// The maximum number of files in a group.
    static let maxFiles = 16
    /// The maximum size of a file in a group, in bytes.
    static let maxFileBytes: Int64 = 4 << 20
    /// The maximum total size of a group, in bytes.
    static let maxBytes: Int64 = 8 << 20

    private let maxFiles: Int
    /// The item that did not fit into the last group.
    private var pending: ImportItem?

    /// - Parameter maxFiles: the maximum number of files in a group, if it is less than ``maxFiles``
    init(maxFiles: Int) { self.maxFiles = min(max(1, maxFiles), Self.maxFiles) }

    /// Returns the next group in the order of the items; empty at the end. An item that is large or has several files
    /// is a group of its own.
    ///
    /// - Parameter next: returns the next item
    mutating func next(_ next: () -> ImportItem?) -> [ImportItem] {
        var group: [ImportItem] = []
        var bytes: Int64 = 0
        while group.count < maxFiles {
            guard let item = pending ?? next() else { break }
            pending = nil
            guard maxFiles > 1, let size = Self.groupedSize(of: item), bytes + size <= Self.maxBytes else {
                if group.isEmpty { return [item] }
                pending = item
                break
            }
            group.append(item)
            bytes += size
        }
        return group
    }

    /// Returns the size in bytes of an item that can be in a group; nil for others.
    private static func groupedSize(of item: ImportItem) -> Int64? {
        guard item.alternate == nil, item.pairedVideo == nil, item.sidecar == nil else { return nil }
        var status = stat()
        guard item.main.withPlatformString({ stat($0, &status) }) == 0, status.st_size <= maxFileBytes else {
            return nil
        }
        return Int64(status.st_size)
    }
}
