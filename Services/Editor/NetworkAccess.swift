import Contracts
import Hosting
import JSONValue
import Messaging
import PhotoClient
import PhotoModel

/// The permission of a request to download bytes from remote storage, and the receiver of the progress (S-93).
struct NetworkAccess: Sendable {
    static let none = NetworkAccess(isAllowed: false)

    var isAllowed: Bool
    /// Receives `resource.progress`; nil if nobody does, as with several assets at a time and with published edits.
    var client: RequestContext?
}

extension EditProcessor {
    /// Makes sure that bytes may be opened and are on this machine. Those that are only in remote storage are downloaded,
    /// if the request allows it.
    ///
    /// - Throws: `quarantined`; `network_access_required`, with `isInCloud`; `network_error`. Bytes that are nowhere are no
    ///   error here: opening them is.
    func require(
        _ digest: String,
        of found: CatalogConnection.FetchedAsset,
        _ access: NetworkAccess = .none
    ) async throws(RPCError) {
        try found.requireOpen(digest)
        guard (try? resources.open(digest)) == nil else { return }
        let request = DownloadResource(
            asset: found.asset.id,
            digest: digest,
            isNetworkAccessAllowed: access.isAllowed
        )
        do throws(RPCError) {
            try await catalog.library.catalog.download(request) { progress throws(RPCError) in
                guard let client = access.client, client.acceptsNotifications else { return }
                try await client.notifier.notify(DownloadResource.notification, ["progress": .double(progress)])
            }
        } catch  where error.errorCode == .missingResource || error.errorCode == .methodNotFound {
            return
        }
    }
}
