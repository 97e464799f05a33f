import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import Metadata
import PhotoModel
import Storage

/// The metadata of sidecars.
extension ResourceIngestor {
    /// Returns the metadata of a sidecar; its bytes are not stored. An error of the sidecar says that it is one, for
    /// clients that import the other files without it.
    func read(sidecar: NewResource, _ context: RequestContext) async throws -> SidecarMetadata {
        do {
            return try await metadata(of: sidecar, context)
        } catch {
            throw rpcError(error).ofSidecar
        }
    }

    /// Keeps the metadata of a sidecar in memory.
    ///
    /// - Throws: an error that says that it is one of the sidecar
    func reserve(_ bytes: Int, ofSidecarIn taken: TakenResources) throws {
        do {
            try taken.reserve(bytes)
        } catch {
            throw rpcError(error).ofSidecar
        }
    }

    private func metadata(of sidecar: NewResource, _ context: RequestContext) async throws -> SidecarMetadata {
        let limit = Int64(SidecarMetadata.maxBytes)
        let bytes: Bytes
        switch sidecar.source {
        case .attachment(let number): bytes = try attachment(number, context)
        case .path(let named):
            let file = try roots.open(named, for: context.identity)
            bytes = try await blockingIO.run(for: WorkSource(of: context)) { try file.readAll(limit: limit) }
        case .upload, nil: throw ResourceError.noSidecarSource
        }
        guard bytes.count <= SidecarMetadata.maxBytes else {
            throw ResourceError.sidecarTooLarge(bytes: bytes.count, limit: limit)
        }
        return try await extractor.sidecar(bytes, name: sidecar.path ?? sidecar.originalFilename ?? "the sidecar")
    }
}

extension RPCError {
    /// The error with the mark of a sidecar, if another attempt with the same file ends alike, and one without the file
    /// need not.
    fileprivate var ofSidecar: RPCError {
        var error = self
        switch errorCode {
        case .invalidResource, .missingResource, .limitExceeded, .resourceChanged, .workerCrashed, .workerTimeout,
            .quarantined, .internalError:
            error.data["sidecar"] = true
        default: break
        }
        return error
    }
}
