import Glibc

/// The files of a store.
extension ResourceStore {
    /// The parts of the store that ``digests(in:)`` lists one at a time: the first two digits of a digest.
    public static let parts: [String] = (0..<256).map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }

    /// Returns true if a store at a path has any files. A folder that does not exist has none.
    public static func hasFiles(root: String) throws(StorageError) -> Bool {
        for part in parts {
            do throws(StorageError) {
                for second in try DirectoryOperations.names(in: "\(root)/\(part)") {
                    if try !DirectoryOperations.names(in: "\(root)/\(part)/\(second)").isEmpty { return true }
                }
            } catch .notFound {}
        }
        return false
    }

    /// A stored file, or a reference.
    public struct StoredFile: Sendable {
        /// The size on disk in bytes.
        public var size: Int64
        /// When it was stored or last linked (`st_ctime`), in microseconds since 1970.
        public var changedAt: Int64
    }

    /// Returns all digests in one part of the store, including referenced files.
    public func digests(in part: String) throws(StorageError) -> [ResourceDigest: StoredFile] {
        var found: [ResourceDigest: StoredFile] = [:]
        do throws(StorageError) {
            for second in try DirectoryOperations.names(in: "\(root)/\(part)") where second.count == 2 {
                let folder = "\(root)/\(part)/\(second)"
                for name in try DirectoryOperations.names(in: folder) {
                    let isReference = name.hasSuffix(Self.referenceEnding)
                    let text = isReference ? String(name.dropLast(Self.referenceEnding.count)) : name
                    guard let digest = ResourceDigest(text),
                        let status = try? DirectoryOperations.status("\(folder)/\(name)")
                    else {
                        continue
                    }
                    let time = Int64(status.st_ctim.tv_sec) * 1_000_000 + Int64(status.st_ctim.tv_nsec) / 1000
                    var file = found[digest] ?? StoredFile(size: 0, changedAt: 0)
                    file.size += Int64(status.st_size)
                    file.changedAt = max(file.changedAt, time)
                    found[digest] = file
                }
            }
        } catch .notFound {
            return found
        }
        return found
    }
}
