import Basics
import Contracts
import Hosting
import JSONValue
import Messaging
import Metadata
import PhotoModel
import Storage

/// The metadata of sidecars and of raw files beside a photo.
extension ResourceIngestor {
    /// Adds to the metadata of a photo the values that only the raw file beside it has.
    func addFactsOfRawFile(to resources: inout [PreparedResource], _ uncommitted: UncommittedResources) throws {
        guard let index = resources.firstIndex(where: \.type.isOriginal), let before = resources[index].facts,
            let raw = resources.first(where: { $0.type == .alternatePhoto })?.facts
        else { return }
        resources[index].facts?.fill(from: raw)
        try uncommitted.reserve(max(0, (resources[index].facts?.textBytes ?? 0) - before.textBytes))
    }

    /// Returns the metadata of a sidecar; its bytes are not stored. Errors of the sidecar are marked as such, for
    /// clients that then import the other files without it.
    ///
    /// - Parameter image: the metadata of the image beside it
    func read(
        sidecar: NewResource,
        beside image: ExtractedMetadata?,
        _ context: RequestContext
    ) async throws -> SidecarMetadata {
        do {
            return try await metadata(of: sidecar, beside: image, context)
        } catch {
            throw rpcError(error).ofSidecar
        }
    }

    /// Reserves memory for the metadata of a sidecar.
    ///
    /// - Throws: an error that is marked as one of the sidecar
    func reserve(_ bytes: Int, ofSidecarIn uncommitted: UncommittedResources) throws {
        do {
            try uncommitted.reserve(bytes)
        } catch {
            throw rpcError(error).ofSidecar
        }
    }

    private func metadata(
        of sidecar: NewResource,
        beside image: ExtractedMetadata?,
        _ context: RequestContext
    ) async throws -> SidecarMetadata {
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
        let name = sidecar.path ?? sidecar.originalFilename ?? "the sidecar"
        return try await extractor.sidecar(bytes, name: name, beside: image)
    }
}

extension RPCError {
    /// The error, marked as one of the sidecar if the import would fail again with the sidecar, but may succeed without
    /// it.
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
