public import Foundation
import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

/// The identifier of a request for bytes, with which it can be cancelled.
public typealias PHAssetResourceDataRequestID = Int32

/// An identifier that no request has.
public let PHInvalidAssetResourceDataRequestID: PHAssetResourceDataRequestID = 0

/// The options of a request for bytes: `PHAssetResourceRequestOptions` (T-33).
public final class PHAssetResourceRequestOptions {
    public var isNetworkAccessAllowed = false
    /// Called on a serial queue while the file is downloaded; never for a file that is on the library's machine.
    public var progressHandler: (@Sendable (Double) -> Void)?

    public init() {}
}

/// Delivers the bytes of files: `PHAssetResourceManager` (T-31, T-32). They are verified against the digest of the
/// file.
public final class PHAssetResourceManager: Sendable {
    private static let shared = PHAssetResourceManager()
    private let tasks = Mutex<[PHAssetResourceDataRequestID: Task<Void, Never>]>([:])

    public class func `default`() -> PHAssetResourceManager { shared }

    /// Requests the bytes of a file in parts of up to 1 MiB, in order.
    ///
    /// - Parameters:
    ///   - dataReceivedHandler: called with each part on the callback queue; the next part is read when it returns
    ///   - completionHandler: called once after the last part, with the error if the file is incomplete
    @discardableResult
    public func requestData(
        for resource: PHAssetResource,
        options: PHAssetResourceRequestOptions?,
        dataReceivedHandler: @escaping @Sendable (Data) -> Void,
        completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) -> PHAssetResourceDataRequestID {
        let connection = resource.connection
        let access = NetworkAccess(options)
        let id = connection.makeRequestID()
        start(id, connection) {
            var failure: PHPhotosError?
            do {
                for try await part in Parts(resource: resource, access: access) {
                    await withCheckedContinuation { continuation in
                        connection.callbacks.async {
                            dataReceivedHandler(part)
                            continuation.resume()
                        }
                    }
                }
                if Task.isCancelled { failure = PHPhotosError(.userCancelled, "the request was cancelled") }
            } catch {
                failure = PHPhotosError(error)
            }
            connection.callbacks.async { [failure] in completionHandler(failure) }
        }
        return id
    }

    /// Writes the bytes to a file. After a failure there is no file.
    public func writeData(
        for resource: PHAssetResource,
        toFile fileURL: URL,
        options: PHAssetResourceRequestOptions?,
        completionHandler: @escaping @Sendable ((any Error)?) -> Void
    ) {
        let connection = resource.connection
        let access = NetworkAccess(options)
        start(connection.makeRequestID(), connection) {
            var failure: (any Error)?
            do {
                let parts = Parts(resource: resource, access: access)
                try await self.write(parts, of: resource, to: fileURL)
            } catch {
                failure = error
            }
            connection.callbacks.async { [failure] in completionHandler(failure) }
        }
    }

    /// Writes the bytes to a file. After a failure there is no file.
    ///
    /// - Throws: a ``PHPhotosError``
    public func writeData(
        for resource: PHAssetResource,
        toFile fileURL: URL,
        options: PHAssetResourceRequestOptions?
    ) async throws {
        let access = NetworkAccess(options)
        try await write(Parts(resource: resource, access: access), of: resource, to: fileURL)
    }

    private func write(_ bytes: Parts, of resource: PHAssetResource, to fileURL: URL) async throws {
        var parts = bytes.makeAsyncIterator()
        try await AVAsset.write(to: fileURL, size: resource.fileSize) { offset in
            let part = try await parts.next() ?? Data()
            // The iterator verifies the digest after the last part, before the temporary file is renamed.
            if !part.isEmpty, offset + Int64(part.count) >= resource.fileSize, try await parts.next() != nil {
                throw PHPhotosError(.resourceChanged, "the file was changed while it was read; fetch the asset again")
            }
            return part
        }
    }

    public func cancelDataRequest(_ requestID: PHAssetResourceDataRequestID) {
        tasks.withLock { $0[requestID] }?.cancel()
    }

    /// Returns the bytes of a file in parts of up to 1 MiB.
    ///
    /// - Parameter isNetworkAccessAllowed: true to allow bytes to be downloaded from the object store
    public func data(for resource: PHAssetResource, isNetworkAccessAllowed: Bool = false) -> Parts {
        Parts(resource: resource, access: NetworkAccess(isAllowed: isNetworkAccessAllowed))
    }

    /// The bytes of a file. Its error is a ``PHPhotosError``.
    public struct Parts: AsyncSequence, Sendable {
        let resource: PHAssetResource
        let access: NetworkAccess

        public func makeAsyncIterator() -> Iterator {
            let type = ResourceType(number: resource.type.rawValue) ?? .photo
            // The asset may have been edited since it was fetched, so a whole file is requested by its digest.
            let bytes = resource.connection.client.resource(
                asset: resource.id,
                type: type,
                digest: resource.resource.offset == nil ? resource.digest : nil,
                isNetworkAccessAllowed: access.isAllowed,
                connectionDeadline: resource.connection.configuration.deadline
            ) { progress async throws(RPCError) in
                _ = try await access.report(DownloadResource.notification, ["progress": .double(progress)])
            }
            return Iterator(bytes: bytes.makeAsyncIterator())
        }

        public struct Iterator: AsyncIteratorProtocol {
            var bytes: ResourceBytes.Iterator

            public mutating func next() async throws -> Data? {
                do throws(RPCError) {
                    return try await bytes.next().map { Data($0) }
                } catch {
                    throw PHPhotosError(error)
                }
            }
        }
    }

    private func start(
        _ id: PHAssetResourceDataRequestID,
        _ connection: LibraryConnection,
        _ work: @escaping @Sendable () async -> Void
    ) {
        tasks.withLock { tasks in
            tasks[id] = connection.start {
                await work()
                _ = self.tasks.withLock { $0.removeValue(forKey: id) }
            }
        }
    }
}
