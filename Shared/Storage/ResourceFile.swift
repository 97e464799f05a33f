import Basics
import Glibc

/// Stored bytes, open for reading; closed when the object is deallocated.
///
/// Removing the resource does not disturb readers that have it open.
public final class ResourceFile: Sendable {
    /// The digest of the bytes; `nil` for a file opened by its path.
    public let digest: ResourceDigest?
    /// The size in bytes when it was opened.
    public let size: Int64
    /// The open descriptor, for passing to a worker; valid as long as this object exists.
    public let descriptor: Int32
    /// True if it is a file of the store, as opposed to a referenced file.
    private let isStored: Bool

    init(_ file: consuming Descriptor, digest: ResourceDigest?, isStored: Bool = false) throws(StorageError) {
        self.isStored = isStored
        let status = try file.status()
        guard status.st_mode & S_IFMT == S_IFREG else { throw .io("not a regular file") }
        self.digest = digest
        self.size = Int64(status.st_size)
        self.descriptor = file.release()
    }

    deinit { _ = close(descriptor) }

    /// Returns the bytes of a range; fewer than requested at the end of the file, none beyond it.
    ///
    /// - Parameters:
    ///   - offset: the first byte, from 0.
    ///   - count: the maximum number of bytes, from 0 to 64 MiB.
    /// - Returns: the bytes.
    /// - Throws: ``StorageError/invalid(_:)`` for an invalid range.
    public func read(offset: Int64, count: Int) throws(StorageError) -> [UInt8] {
        guard offset >= 0, count >= 0, count <= ResourceStore.largestRead else {
            throw .invalid("a range must begin at 0 or later and have at most \(ResourceStore.largestRead) bytes")
        }
        guard offset < size else { return [] }
        let length = min(Int64(count), size - offset)
        let file = Descriptor(owning: descriptor)
        let result = Result { () throws(StorageError) in try file.read(count: Int(length), at: offset) }
        // The descriptor stays owned by this object.
        _ = file.release()
        return try result.get()
    }

    /// Reads all bytes and checks them against the digest.
    ///
    /// - Parameter limit: the largest size to read, in bytes.
    /// - Returns: the bytes.
    /// - Throws: ``StorageError/tooLarge(_:)``, or ``StorageError/resourceChanged(_:)`` if the bytes are not those that
    ///   were stored.
    public func readAll(limit: Int64) throws(StorageError) -> [UInt8] {
        guard size <= limit else { throw .tooLarge("the resource has \(size) bytes, the limit is \(limit)") }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(Int(size))
        while Int64(bytes.count) < size {
            let more = try read(offset: Int64(bytes.count), count: ResourceStore.stepBytes)
            if more.isEmpty { break }
            bytes.append(contentsOf: more)
        }
        try require(ResourceDigest(SHA256.hash(data: bytes)))
        return bytes
    }

    /// Reads all bytes and compares their hash with the digest, without keeping them.
    ///
    /// - Parameter fromDisk: true to bypass the page cache.
    /// - Throws: ``StorageError/resourceChanged(_:)`` if the bytes are not those that were stored.
    public func verify(fromDisk: Bool = false) throws(StorageError) {
        if fromDisk { dropFromPageCache() }
        try require(try hash())
    }

    /// Drops the file from the page cache, so that the next reads come from the disk.
    public func dropFromPageCache() { _ = posix_fadvise(descriptor, 0, 0, POSIX_FADV_DONTNEED) }

    /// Compares the hash of all bytes with the digest under which they are stored.
    ///
    /// A stored file with another hash is marked as damaged, and is replaced when intact bytes arrive.
    ///
    /// - Throws: ``StorageError/resourceChanged(_:)`` if they differ.
    public func require(_ found: ResourceDigest) throws(StorageError) {
        guard let digest, found != digest else { return }
        if isStored { PublicationStamp.remove(from: descriptor, digest) }
        throw .resourceChanged(
            "\(digest): the stored bytes are damaged; import the file again, or restore it from a backup"
        )
    }

    /// Returns the digest of the current bytes; reads the whole file.
    public func hash() throws(StorageError) -> ResourceDigest {
        let hash = FileHash(of: self)
        while true {
            if let digest = try hash.next() { return digest }
        }
    }
}
