import Contracts
public import Basics
public import JSONValue
public import PhotoModel

extension PhotoLibrary {
    /// Returns the bytes of an asset's resource, in chunks of up to 1 MiB; their digest is verified at the end.
    ///
    /// - Parameters:
    ///   - digest: SHA-256 of the expected file, because an edit may replace the resource; `missing_resource` is thrown
    ///     if the catalog has no such file for this client. Nil for the current file
    ///   - credit: unread bytes that the catalog may send ahead, at least one chunk
    ///   - isNetworkAccessAllowed: true if bytes in remote storage may be downloaded
    ///   - connectionDeadline: the time limit for a connection; there is none for the bytes
    ///   - progress: receives the fraction that was downloaded, 0...1; not called for bytes on the catalog's machine
    public func resource(
        asset: ObjectID,
        type: ResourceType = .photo,
        digest: String? = nil,
        credit: Int = 4 << 20,
        isNetworkAccessAllowed: Bool = false,
        connectionDeadline: Duration = .seconds(30),
        progress: @escaping ResourceBytes.Progress = { _ in }
    ) -> ResourceBytes {
        ResourceBytes(
            library: self,
            asset: asset,
            type: type,
            digest: digest,
            credit: max(ReadResource.chunkBytes, credit),
            isNetworkAccessAllowed: isNetworkAccessAllowed,
            connectionDeadline: connectionDeadline,
            progress: progress
        )
    }
}

/// The bytes of a resource. Each iteration reads them again; after a lost connection it resumes at its offset.
public struct ResourceBytes: AsyncSequence, Sendable {
    public typealias Element = Bytes
    public typealias Failure = RPCError
    public typealias Progress = @Sendable (Double) async throws(RPCError) -> Void

    let library: PhotoLibrary
    let asset: ObjectID
    let type: ResourceType
    let digest: String?
    let credit: Int
    let isNetworkAccessAllowed: Bool
    let connectionDeadline: Duration
    let progress: Progress

    /// Reads all bytes into memory.
    ///
    /// - Throws: `limit_exceeded` if there are more than `limit`; the errors of ``Iterator/next(isolation:)``
    public func readAll(limit: Int) async throws(RPCError) -> Bytes {
        var bytes: Bytes = []
        for try await chunk in self {
            guard bytes.count + chunk.count <= limit else {
                throw ErrorCode.limitExceeded.error("the resource has more than \(limit) bytes; read it in chunks")
            }
            bytes.append(contentsOf: chunk)
        }
        return bytes
    }

    public func makeAsyncIterator() -> Iterator { Iterator(resource: self) }

    public struct Iterator: AsyncIteratorProtocol {
        private let resource: ResourceBytes
        private var stream: ServiceStream<ReadResource>.Iterator?
        private var hash = SHA256()
        private var offset: Int64 = 0
        private var hasEnded = false
        private var backoff = Backoff()
        private var failures = 0

        /// Consecutive transient failures before the error is thrown.
        private static let maxFailures = 12

        init(resource: ResourceBytes) { self.resource = resource }

        /// Returns the next chunk; nil after the last.
        ///
        /// - Throws: `resource_changed` after the last chunk if the bytes do not have the resource's digest;
        ///   `deadline_exceeded` if there is no connection in time; the catalog's error
        public mutating func next(
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(RPCError) -> Bytes? {
            while !hasEnded {
                do throws(RPCError) {
                    if stream == nil { try await connect() }
                    if let chunk = try await readChunk() { return chunk }
                } catch  where error.isTransient && failures < Self.maxFailures {
                    failures += 1
                    stream = nil
                    try await waitBeforeRetry(backoff.nextDelay())
                }
            }
            return nil
        }

        public mutating func next() async throws(RPCError) -> Bytes? { try await next(isolation: #isolation) }

        /// Waits for a connection. A stream without a deadline would wait for it indefinitely.
        private mutating func connect() async throws(RPCError) {
            let catalog = resource.library.catalog
            guard !catalog.isConnected else { return }
            do throws(RPCError) {
                _ = try await catalog.health(deadline: resource.connectionDeadline)
            } catch {
                // The time limit has passed: this error is not retried.
                if error.errorCode == .deadlineExceeded { failures = Self.maxFailures }
                throw error
            }
        }

        /// Handles the next event; returns its bytes, nil if it has none.
        private mutating func readChunk() async throws(RPCError) -> Bytes? {
            var stream = self.stream ?? open()
            let event = try await stream.next()
            self.stream = stream
            switch event {
            case .notification(DownloadResource.notification, let params, _):
                if let fraction = params["progress"]?.doubleValue { try await resource.progress(fraction) }
                return nil
            case .notification(_, let params, let attachments):
                guard let chunk = attachments.first, params["offset"]?.intValue == offset else {
                    throw ErrorCode.interrupted.error("the catalog sent bytes at an unexpected offset; retry")
                }
                return accept(chunk)
            case .response(let response):
                hasEnded = true
                // A short resource may be attached to the response.
                if offset == response.result.offset, let chunk = response.attachments.first { hash.update(data: chunk) }
                // The digest of a part is that of its file, which the catalog verifies.
                let isPart = response.result.resource.offset != nil
                guard isPart || hash.finalize().hexadecimal == response.result.resource.digest else {
                    throw ErrorCode.resourceChanged.error(
                        "the bytes of \(resource.type.rawValue) of \(resource.asset) do not match its digest"
                    )
                }
                return response.attachments.first
            case nil:
                hasEnded = true
                return nil
            }
        }

        private func open() -> ServiceStream<ReadResource>.Iterator {
            let request = ReadResource(
                asset: resource.asset,
                type: resource.type,
                digest: resource.digest,
                offset: offset,
                isNetworkAccessAllowed: resource.isNetworkAccessAllowed
            )
            let stream = resource.library.catalog.stream(request, credit: resource.credit, waitsForConnection: false)
            return stream.makeAsyncIterator()
        }

        private mutating func accept(_ chunk: Bytes) -> Bytes {
            hash.update(data: chunk)
            offset += Int64(chunk.count)
            failures = 0
            backoff.reset()
            return chunk
        }
    }
}
