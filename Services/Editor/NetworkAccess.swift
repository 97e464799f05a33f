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
    /// The request whose client receives `resource.progress`; nil for none, as with several assets at a time and with
    /// published edits.
    var client: RequestContext?
}

extension EditProcessor {
    /// Makes sure that bytes may be opened and are on this machine. Those that are only in remote storage are
    /// downloaded, if the request allows it.
    ///
    /// - Throws: `quarantined`; `network_access_required`, with `isInCloud`; `network_error`. Bytes that exist nowhere
    ///   cause no error here, but when they are opened.
    func require(
        _ digest: String,
        of found: CatalogConnection.FetchedAsset,
        _ access: NetworkAccess = .none
    ) async throws(RPCError) {
        try found.requireNotQuarantined(digest)
        try await require(digest, of: found.asset.id, isEarlier: false, access)
    }

    /// Makes sure that bytes are on this machine.
    ///
    /// - Parameter isEarlier: true for those of an earlier version of the asset, which are not in remote storage only
    /// - Throws: as ``require(_:of:_:)``
    func require(
        _ digest: String,
        of asset: ObjectID,
        isEarlier: Bool = false,
        _ access: NetworkAccess = .none
    ) async throws(RPCError) {
        let (catalog, isAllowed) = (catalog.library.catalog, access.isAllowed)
        try await resources.require(digest) { () async throws(RPCError) in
            guard !isEarlier else { return }
            let request = DownloadResource(asset: asset, digest: digest, isNetworkAccessAllowed: isAllowed)
            try await catalog.download(request) { progress throws(RPCError) in
                guard let client = access.client, client.acceptsNotifications else { return }
                try await client.notifier.notify(DownloadResource.notification, ["progress": .double(progress)])
            }
        } read: { sink throws(RPCError) in
            let request = ReadResource(asset: asset, digest: digest, isNetworkAccessAllowed: isAllowed)
            try await catalog.read(request, chunk: sink)
        }
    }
}
