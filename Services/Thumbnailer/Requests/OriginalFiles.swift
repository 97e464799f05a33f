import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// Copies the bytes that a request needs to this machine (S-47, S-48).
struct OriginalFiles: Sendable {
    let resources: ResourceFolder
    let catalog: ServiceClient

    /// Returns true if the bytes can be opened.
    func isLocal(_ digest: String) -> Bool { resources.isLocal(digest) }

    /// Makes sure that bytes are on this machine. Bytes that are only in remote storage are downloaded, if the request
    /// allows network access, and copied, if the catalog is on another machine. The request's client receives
    /// `resource.progress` of the download.
    ///
    /// - Throws: `network_access_required`, with `isInCloud`; `network_error`. Bytes that are missing everywhere cause
    ///   an error only when they are opened.
    func require(
        _ digest: String,
        of asset: ObjectID,
        isNetworkAccessAllowed: Bool = false,
        _ context: RequestContext? = nil
    ) async throws(RPCError) {
        let (catalog, isAllowed) = (catalog, isNetworkAccessAllowed)
        try await resources.require(digest) { () async throws(RPCError) in
            let request = DownloadResource(asset: asset, digest: digest, isNetworkAccessAllowed: isAllowed)
            try await catalog.download(request) { progress throws(RPCError) in
                guard let context, context.acceptsNotifications else { return }
                try await context.notifier.notify(DownloadResource.notification, ["progress": .double(progress)])
            }
        } read: { sink throws(RPCError) in
            let request = ReadResource(asset: asset, digest: digest, isNetworkAccessAllowed: isAllowed)
            try await catalog.read(request, chunk: sink)
        }
    }
}
