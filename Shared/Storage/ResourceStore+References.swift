import Basics
import Glibc

/// A file outside the store that stands for bytes which were not copied in.
public struct FileReference: Sendable, Hashable {
    /// Where the file is, absolute.
    public var path: String
    /// What it was when its bytes were read.
    public var identity: FileIdentity
    /// When a search no longer found it, in microseconds since 1970; nil while it is there.
    public var missingSince: Int64?

    /// A reference.
    public init(path: String, identity: FileIdentity, missingSince: Int64? = nil) {
        self.path = path
        self.identity = identity
        self.missingSince = missingSince
    }

    private static let magic = "safelight-reference 1"

    /// Three parts: what it is, the numbers, and the path to the end.
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

/// Files that are referenced where they are.
///
/// Beside where a digest's bytes would be stands `<64 digits>.ref`, which names the file and what it was. Every opening
/// compares device, inode, size and time, so that a changed or replaced file is never served as what it was.
extension ResourceStore {
    static let referenceEnding = ".ref"
    private static let longestReference = 8192

    func referencePath(of digest: ResourceDigest) -> String { path(of: digest) + Self.referenceEnding }

    /// The file that stands for a digest; nil where the bytes are stored, or nowhere.
    ///
    /// - Throws: ``StorageError/corrupt(_:)`` for a reference that cannot be read.
    public func reference(of digest: ResourceDigest) throws(StorageError) -> FileReference? {
        let bytes: [UInt8]
        do throws(StorageError) {
            let file = try Descriptor(opening: referencePath(of: digest), O_RDONLY | O_NOFOLLOW)
            bytes = try file.read(count: Self.longestReference, at: 0)
        } catch .notFound {
            return nil
        }
        guard let reference = FileReference(bytes: bytes) else {
            throw .corrupt("\(referencePath(of: digest)) cannot be read; import the file again, or restore a backup")
        }
        return reference
    }

    /// Reads an open file once and lets it stand for its bytes, without copying them.
    ///
    /// Where the bytes are stored, or another file stands for them that is still the same, that is kept.
    ///
    /// - Parameters:
    ///   - file: the file; the caller has checked that the client may name it.
    ///   - path: where it is, absolute.
    ///   - limit: the largest size, in bytes.
    ///   - verifies: also reads a file that is stored already and compares it with its digest.
    /// - Returns: the name of the bytes; durable.
    /// - Throws: ``StorageError/resourceChanged(_:)`` for a file that changes while it is read.
    public func refer(
        to file: ResourceFile,
        at path: String,
        limit: Int64,
        verifies: Bool = false
    ) throws(StorageError) -> StoredResource {
        guard file.size <= limit else {
            throw .tooLarge("the file has \(file.size) bytes, the limit is \(limit)")
        }
        let identity = try FileIdentity(of: file)
        let digest = try file.hash()
        return try refer(
            to: file,
            at: path,
            digest: digest,
            identity: identity,
            limit: limit,
            verifies: verifies
        )
    }

    /// The same for a file whose bytes were read already.
    ///
    /// - Parameters:
    ///   - digest: the name of its bytes.
    ///   - identity: what it was before they were read.
    public func refer(
        to file: ResourceFile,
        at path: String,
        digest: ResourceDigest,
        identity: FileIdentity,
        limit: Int64,
        verifies: Bool = false
    ) throws(StorageError) -> StoredResource {
        guard try FileIdentity(of: file) == identity else {
            throw .resourceChanged("\(path) changed while it was read; try again when nobody writes to it")
        }
        let lease = lease(digest)
        // A stored file stays, and is healed by these bytes where it is damaged.
        if contains(digest) { return try put(copying: file, limit: limit, verifies: verifies) }
        let isPresent = (try? openReference(digest)) != nil
        if !isPresent { try setReference(FileReference(path: path, identity: identity), of: digest) }
        return StoredResource(digest: digest, size: file.size, wasPresent: isPresent, isHealed: false, lease: lease)
    }

    /// Lets a file stand for a digest from now on; durable when it returns.
    public func setReference(_ reference: FileReference, of digest: ResourceDigest) throws(StorageError) {
        guard reference.path.utf8.count <= Self.longestReference - 256 else { throw .invalid("the path is too long") }
        let folder = try makeFolders(of: digest)
        let temporary = try newIncoming()
        do throws(StorageError) {
            let file = try Descriptor(opening: temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
            try file.write(reference.bytes)
            try file.sync()
            let target = referencePath(of: digest)
            guard rename(temporary, target) == 0 else { throw .system(errno, "rename to \(target)") }
        } catch {
            unlink(temporary)
            throw error
        }
        try Folder.sync(folder)
    }

    /// Visits all references, one folder at a time, in no order; `visit` returns `false` to stop.
    ///
    /// A reference that cannot be read is left out.
    public func forEachReference(_ visit: (ResourceDigest, FileReference) -> Bool) throws(StorageError) {
        for first in try Folder.names(in: root) where first.count == 2 {
            for second in try Folder.names(in: "\(root)/\(first)") where second.count == 2 {
                for name in try Folder.names(in: "\(root)/\(first)/\(second)")
                where name.hasSuffix(Self.referenceEnding) {
                    guard let digest = ResourceDigest(String(name.dropLast(Self.referenceEnding.count))),
                        let reference = try? reference(of: digest)
                    else { continue }
                    if !visit(digest, reference) { return }
                }
            }
        }
    }

    /// Removes a reference; the file that it names is not touched.
    public func removeReference(of digest: ResourceDigest) throws(StorageError) {
        do throws(StorageError) { try Folder.removeFile(referencePath(of: digest)) } catch .notFound {}
    }

    /// Opens the file that stands for a digest, if it is still the same.
    ///
    /// - Throws: ``StorageError/notFound(_:)`` where there is no reference, or its file is gone;
    ///   ``StorageError/resourceChanged(_:)`` where it is another file, or was written to.
    func openReference(_ digest: ResourceDigest) throws(StorageError) -> ResourceFile {
        guard let reference = try reference(of: digest) else { throw .notFound("no resource \(digest) is stored") }
        let path = reference.path
        let file: ResourceFile
        do throws(StorageError) {
            // Not blocking: a named pipe may have taken the place of the file.
            let flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
            file = try ResourceFile(Descriptor(opening: path, flags), digest: digest)
        } catch {
            throw .notFound(
                "the referenced file \(path) is not there (\(error.name)); attach its disk, or put it back and rescan"
            )
        }
        do throws(StorageError) { try file.require(reference.identity) } catch {
            throw .resourceChanged("the referenced file \(path) was changed or replaced; rescan its folder")
        }
        return file
    }
}
