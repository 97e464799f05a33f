import Basics
import Contracts
import Foundation
import JSONValue
import Logging
import PhotoClient
import PhotoModel
import SystemPackage

/// The files of a transaction. Small ones are attached to its message, others are uploaded before it.
struct ChangeFiles {
    private(set) var attachments: [Bytes] = []
    /// The uploads that the requests name.
    private(set) var uploads: [String] = []
    /// The files that are removed after the commit.
    private var moved: [MovedFile] = []
    private var size = 0
    /// The number of files that are attached.
    private var fileCount = 0
    private let connection: LibraryConnection
    /// The maximum number of attached files: the frames that the adjustment data does not need. Other files are
    /// uploaded.
    private let maxCount: Int

    private static let maxSize = 6 << 20
    /// A message has at most 64 frames, and the first one is the request.
    private static let maxAttachments = 63
    /// The catalog's limit for an identity.
    private static let maxUploads = 64

    /// - Throws: `limit_exceeded` if the changes have more adjustment data than can be attached
    init(_ connection: LibraryConnection, for changes: [any RecordedChange]) throws(RPCError) {
        let edits = changes.count(where: { $0.hasAdjustmentData })
        guard edits <= Self.maxAttachments else {
            throw ErrorCode.limitExceeded.error(
                "a change block can commit \(Self.maxAttachments) edits, not \(edits); use several blocks",
                ["limit": JSON(Self.maxAttachments)]
            )
        }
        self.connection = connection
        maxCount = min(48, Self.maxAttachments - edits)
    }

    /// - Throws: `limit_exceeded` if the changes have more files than can be attached and uploaded
    mutating func add(_ bytes: Bytes) async throws(RPCError) -> ResourceSource {
        guard canAttach(bytes.count) else {
            try checkUploads()
            return recordUpload(try await connection.client.upload(bytes))
        }
        return attachFile(bytes)
    }

    /// - Throws: `missing_resource` if the file cannot be read; `limit_exceeded` as ``add(_:)``
    mutating func add(file url: URL) async throws(RPCError) -> ResourceSource { try await add(try SourceFile(url)) }

    /// - Parameter verifies: true to compare the file that the library already stores, if it has one, with the bytes
    private mutating func add(_ file: SourceFile, verifies: Bool = false) async throws(RPCError) -> ResourceSource {
        guard canAttach(file.size) else {
            try checkUploads()
            // The file has to stay open until the end of the upload.
            defer { withExtendedLifetime(file) {} }
            return recordUpload(
                try await connection.client.upload(file.descriptor, named: file.path, verifies: verifies)
            )
        }
        return attachFile(try file.read())
    }

    private func canAttach(_ count: Int) -> Bool { count <= Self.maxSize - size && fileCount < maxCount }

    private mutating func attachFile(_ bytes: Bytes) -> ResourceSource {
        fileCount += 1
        size += bytes.count
        attachments.append(bytes)
        return .attachment(attachments.count - 1)
    }

    private func checkUploads() throws(RPCError) {
        guard uploads.count < Self.maxUploads else {
            throw ErrorCode.limitExceeded.error(
                "the files of a change block are too many or too large; use several blocks",
                ["limit": JSON(Self.maxUploads)]
            )
        }
    }

    private mutating func recordUpload(_ upload: String) -> ResourceSource {
        uploads.append(upload)
        return .upload(upload)
    }

    /// Adds a file that is removed after the commit. If the library already stores a file with these bytes, that one is
    /// verified first: it may be damaged, and will be the only copy.
    ///
    /// - Throws: `invalid_resource` if it has other hard links (T-21); errors of ``add(file:)``
    mutating func move(file url: URL) async throws(RPCError) -> ResourceSource {
        let file = try SourceFile(url)
        guard !file.hasOtherLinks else {
            throw ErrorCode.invalidResource.error("\(url.path) has other hard links and cannot be moved")
        }
        moved.append(MovedFile(url: url, identity: file.identity))
        return try await add(file, verifies: true)
    }

    /// Removes the files that were moved in. It is called after the transaction is committed.
    func removeMoved() {
        for file in moved {
            if file.remove() { continue }
            connection.logger.warning(
                "a file that was moved in was not removed: it was changed or replaced, or cannot be removed",
                metadata: ["file": "\(file.url.path)"]
            )
        }
    }

    /// Attaches bytes that cannot be uploaded, such as adjustment data, and returns the number of the attachment.
    mutating func attach(_ bytes: Bytes) -> Int {
        size += bytes.count
        attachments.append(bytes)
        return attachments.count - 1
    }
}
