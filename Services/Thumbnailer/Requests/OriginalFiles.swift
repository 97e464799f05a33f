import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// Makes sure that the bytes of a request are on this machine (S-47, S-48): neither in remote storage only nor, with a
/// catalog on another machine, there only.
struct OriginalFiles: Sendable {
    let resources: ResourceFolder
    let catalog: ServiceClient

    /// Returns true if the bytes can be opened.
    func isHere(_ digest: String) -> Bool { (try? resources.open(digest)) != nil }

    /// Has bytes that are only in remote storage downloaded, if the request allows network access. Its client receives
    /// `resource.progress` meanwhile.
    ///
    /// - Throws: `network_access_required`, with `isInCloud`; `network_error`. Bytes that are nowhere are no error here:
    ///   opening them is.
    func require(
        _ digest: String,
        of asset: ObjectID,
        isNetworkAccessAllowed: Bool = false,
        _ context: RequestContext? = nil
    ) async throws(RPCError) {
        guard !isHere(digest) else {
            resources.spool?.keep(digest)
            return
        }
        let request = DownloadResource(asset: asset, digest: digest, isNetworkAccessAllowed: isNetworkAccessAllowed)
        do throws(RPCError) {
            try await catalog.download(request) { progress throws(RPCError) in
                guard let context, context.acceptsNotifications else { return }
                try await context.notifier.notify(DownloadResource.notification, ["progress": .double(progress)])
            }
        } catch  where error.errorCode == .missingResource || error.errorCode == .methodNotFound {
            return
        }
        let catalog = catalog
        try await resources.spool?.require(digest) { sink throws(RPCError) in
            var read = ReadResource(asset: asset, type: .photo, digest: digest)
            read.isNetworkAccessAllowed = isNetworkAccessAllowed
            try await catalog.read(read, chunk: sink)
        }
    }
}
