public import Contracts
public import JSONValue
import Messaging

extension ServiceClient {
    /// Asks the catalog to make sure that the bytes of a resource are on its machine, and reports the progress of a
    /// download. Cancelling the task ends the download, unless others wait for it.
    ///
    /// - Parameter progress: receives the part that has arrived, from 0 to 1; not called if nothing is downloaded
    /// - Throws: `network_access_required` for bytes in remote storage that may not be downloaded; `network_error` if they
    ///   cannot be; `missing_resource` for bytes that are nowhere
    public func download(
        _ request: DownloadResource,
        progress: (Double) async throws(RPCError) -> Void
    ) async throws(RPCError) {
        for try await event in stream(request, credit: 1 << 16) {
            if case .notification(DownloadResource.notification, let params, _) = event,
                let part = params["progress"]?.doubleValue
            {
                try await progress(part)
            }
        }
    }
}
