import Basics
import Contracts
import Hosting
import Storage

/// The uploads in progress, and the finished ones that no transaction has used yet.
///
/// Each upload belongs to one identity and has a lease that every use renews. The bytes of an expired upload are
/// removed at the next request or by the collector. A restart removes all uploads; using one then fails with
/// `handle_expired`. A finished upload counts against its identity's limits until an asset uses its bytes or they are
/// removed.
actor UploadRegistry {
    struct Limits: Sendable {
        /// The time without use after which an upload expires, in microseconds.
        var lease: Int64 = 600_000_000
        /// The maximum number of uploads per identity.
        var perIdentity = 64
        /// The maximum size of an upload in bytes.
        var bytes: Int64 = 8 << 30
        /// The maximum bytes of all uploads of one identity.
        var bytesPerIdentity: Int64 = 32 << 30
        /// The maximum number of uploads of all identities together.
        var all = 1024
    }

    private struct Upload {
        let identity: String
        let writer: ResourceWriter
        /// The size that the client has announced; nil if it did not know it.
        let announcedSize: Int64?
        var size: Int64 = 0
        var finished: StoredResource?
        var isBusy = false
        /// True if an asset has the bytes, or may have them.
        var isCommitted = false
        var usedAt: Int64
    }

    private let resources: ResourceStore
    private let blockingIO: BlockingIOExecutor
    private let clock: MonotonicClock
    private let limits: Limits
    private let makeName: @Sendable () -> String
    private var uploads: [String: Upload] = [:]
    /// The number of uploads of each identity whose files are being created.
    private var beginning: [String: Int] = [:]
    /// Removes bytes that no asset uses.
    private var discard: @Sendable ([ResourceDigest]) async -> Void = { _ in }
    /// Removes the damage marks of stored files that intact bytes have replaced.
    private var heal: @Sendable ([ResourceDigest]) async -> Void = { _ in }

    init(
        resources: ResourceStore,
        blockingIO: BlockingIOExecutor,
        clock: MonotonicClock,
        limits: Limits = Limits(),
        makeName: @escaping @Sendable () -> String
    ) {
        self.resources = resources
        self.blockingIO = blockingIO
        self.clock = clock
        self.limits = limits
        self.makeName = makeName
    }

    var count: Int { uploads.count }

    /// Sets the functions that remove the bytes of finished uploads that no asset uses, and the damage marks of stored
    /// files that intact bytes have replaced.
    func connect(
        discard: @escaping @Sendable ([ResourceDigest]) async -> Void,
        heal: @escaping @Sendable ([ResourceDigest]) async -> Void
    ) {
        (self.discard, self.heal) = (discard, heal)
    }

    func begin(_ request: BeginUpload, identity: String) async throws -> BeginUpload.Result {
        await removeExpired()
        let allBeginning = beginning.values.reduce(0, +)
        if uploads.count + allBeginning >= limits.all { uploads = uploads.filter { !$0.value.isCommitted } }
        let own = uploads.values.filter { $0.identity == identity && !$0.isCommitted }
        let open = own.count + beginning[identity, default: 0]
        guard open < limits.perIdentity else {
            throw ResourceError.tooManyUploads(open: open, limit: limits.perIdentity)
        }
        guard uploads.count + allBeginning < limits.all else {
            throw ResourceError.uploadsFull(open: open, limit: limits.all)
        }
        let used = own.reduce(Int64(0)) { $0 + $1.size }
        let remainingBytes = min(limits.bytes, limits.bytesPerIdentity - used)
        guard request.size ?? 0 <= remainingBytes, remainingBytes > 0 else {
            throw ResourceError.uploadTooLarge(remaining: remainingBytes)
        }
        let resources = resources
        // The actor handles other requests while the file is created.
        beginning[identity, default: 0] += 1
        defer { endBeginning(identity) }
        let writer = try await blockingIO.run(for: .identity(identity)) { try resources.writer(limit: remainingBytes) }
        let name = makeName()
        uploads[name] = Upload(
            identity: identity,
            writer: writer,
            announcedSize: request.size,
            usedAt: clock.nowMicroseconds()
        )
        return BeginUpload.Result(upload: name)
    }

    func append(_ request: AppendUpload, _ attachments: [Bytes], identity: String) async throws -> AppendUpload.Result {
        var upload = try await open(request.upload, identity)
        guard attachments.count == 1 else {
            throw ResourceError.noChunk
        }
        let bytes = attachments[0]
        guard bytes.count <= BeginUpload.chunkBytes else {
            throw ResourceError.chunkTooLarge(limit: BeginUpload.chunkBytes)
        }
        guard upload.finished == nil else {
            throw ResourceError.uploadFinished(request.upload)
        }
        let (end, overflow) = request.offset.addingReportingOverflow(Int64(bytes.count))
        let writer = upload.writer
        // The chunk was received before, and its response was lost.
        if !overflow, end <= upload.size {
            let isSame = try await blockingIO.run(for: .identity(identity)) {
                try writer.holds(bytes, at: request.offset)
            }
            guard isSame else { throw ResourceError.otherChunk(offset: request.offset) }
            return AppendUpload.Result(size: upload.size)
        }
        guard !overflow, request.offset == upload.size else {
            throw ResourceError.chunkOutOfRange(offset: request.offset, size: upload.size)
        }
        if let announced = upload.announcedSize, end > announced {
            throw ResourceError.announcedSizeDiffers(received: end, announced: announced)
        }
        let used = uploads.values.reduce(Int64(0)) { $1.identity == identity && !$1.isCommitted ? $0 + $1.size : $0 }
        guard Int64(bytes.count) <= limits.bytesPerIdentity - used else {
            throw ResourceError.tooManyUploadedBytes(identity: identity, limit: limits.bytesPerIdentity)
        }
        upload.isBusy = true
        uploads[request.upload] = upload
        do {
            try await blockingIO.run(for: .identity(identity)) { try writer.append(bytes) }
        } catch {
            // The writer failed and removed what it had written.
            uploads[request.upload] = nil
            throw error
        }
        upload.size = end
        release(request.upload, upload)
        return AppendUpload.Result(size: end)
    }

    /// Ends an upload and stores its bytes.
    ///
    /// - Parameter hidesPresence: true if the client must not find out whether the library already has the bytes: the
    ///   reply then does not wait until damage marks are removed
    func finish(
        _ request: FinishUpload,
        identity: String,
        hidesPresence: Bool = false
    ) async throws -> FinishUpload.Result {
        // A malformed digest must not end the upload, whose bytes may be right.
        let announcedDigest = try request.digest.map { text in
            guard let digest = ResourceDigest(text.lowercased()) else { throw ResourceError.malformedDigest }
            return digest
        }
        var upload = try await open(request.upload, identity)
        if upload.finished == nil {
            if let announced = upload.announcedSize, upload.size != announced {
                throw ResourceError.announcedSizeDiffers(received: upload.size, announced: announced)
            }
            upload.isBusy = true
            uploads[request.upload] = upload
            do {
                let writer = upload.writer
                // `finish` syncs the written bytes to disk.
                let lane = BlockingIOExecutor.lane(forBytes: upload.size)
                upload.finished = try await blockingIO.run(lane, for: .identity(identity)) {
                    try writer.finish(verifies: request.verifies, hidesPresence: hidesPresence)
                }
            } catch {
                uploads[request.upload] = nil
                throw error
            }
            release(request.upload, upload)
        }
        guard let finished = upload.finished else { throw Self.expired(request.upload) }
        guard announcedDigest == nil || announcedDigest == finished.digest else {
            await remove([request.upload])
            throw ResourceError.digestDiffers(finished.digest)
        }
        if finished.isHealingOpen {
            let followUp = Task { await heal([finished.digest]) }
            if !hidesPresence { await followUp.value }
        }
        return FinishUpload.Result(
            upload: request.upload,
            digest: finished.digest.text,
            size: finished.size,
            isHealed: finished.isHealed
        )
    }

    /// Removes an upload with its bytes.
    ///
    /// - Parameter hidesPresence: true if the client must not find out whether the library has the bytes otherwise: the
    ///   reply then does not wait until they are removed
    func cancel(
        _ request: CancelUpload,
        identity: String,
        hidesPresence: Bool = false
    ) async throws -> EmptyResult {
        _ = try await open(request.upload, identity)
        let removal = Task { await remove([request.upload]) }
        if !hidesPresence { await removal.value }
        return EmptyResult()
    }

    /// Returns the bytes of a finished upload with a lease of the transaction's own: if the transaction is refused, the
    /// upload keeps the bytes, and if the upload is cancelled meanwhile, the transaction keeps them.
    func finished(_ name: String, identity: String) async throws -> StoredResource {
        let upload = try await open(name, identity)
        guard let finished = upload.finished else {
            throw ResourceError.uploadNotFinished(name)
        }
        return finished.leasedAgain()
    }

    /// Returns the digest of a finished upload.
    func digest(of name: String, identity: String) async throws -> String {
        guard let finished = try await open(name, identity).finished else {
            throw ResourceError.uploadNotFinished(name)
        }
        return finished.digest.text
    }

    /// Stops counting uploads against their identity, because assets now have their bytes.
    func noteCommitted(_ names: [String], identity: String) {
        for name in names where uploads[name]?.identity == identity { uploads[name]?.isCommitted = true }
    }

    /// Removes all uploads of an identity that may no longer add assets.
    func removeAll(of identity: String) async {
        await remove(uploads.filter { !$0.value.isBusy && $0.value.identity == identity }.map(\.key))
    }

    /// Removes the uploads whose lease has expired, with their bytes.
    func removeExpired() async {
        let now = clock.nowMicroseconds()
        await remove(uploads.filter { !$0.value.isBusy && now - $0.value.usedAt > limits.lease }.map(\.key))
    }

    // MARK: Helpers

    private func endBeginning(_ identity: String) {
        let remaining = beginning[identity, default: 0] - 1
        beginning[identity] = remaining > 0 ? remaining : nil
    }

    private func open(_ name: String, _ identity: String) async throws -> Upload {
        await removeExpired()
        // An upload of another identity is reported as missing.
        guard var upload = uploads[name], upload.identity == identity else { throw Self.expired(name) }
        guard !upload.isBusy else {
            throw ResourceError.uploadBusy(name)
        }
        upload.usedAt = clock.nowMicroseconds()
        uploads[name] = upload
        return upload
    }

    private func release(_ name: String, _ upload: Upload) {
        guard uploads[name] != nil else { return }
        var upload = upload
        upload.isBusy = false
        upload.usedAt = clock.nowMicroseconds()
        uploads[name] = upload
    }

    private func remove(_ names: [String]) async {
        var digests: [ResourceDigest] = []
        for name in names {
            guard let upload = uploads.removeValue(forKey: name) else { continue }
            upload.writer.cancel()
            guard let finished = upload.finished else { continue }
            finished.lease.end()
            if !upload.isCommitted { digests.append(finished.digest) }
        }
        if !digests.isEmpty { await discard(digests) }
    }

    private static func expired(_ name: String) -> ResourceError {
        .uploadExpired(name)
    }
}
