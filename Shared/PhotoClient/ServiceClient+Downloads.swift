public import Basics
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

    /// Reads a resource from the catalog.
    ///
    /// - Parameter chunk: receives the bytes in order, up to 1 MiB at a time
    /// - Throws: the catalog's error; `interrupted` if bytes are missing
    public func read(
        _ request: ReadResource,
        credit: Int = 4 << 20,
        chunk: (Bytes) async throws(RPCError) -> Void
    ) async throws(RPCError) {
        var offset = request.offset
        for try await event in stream(request, credit: credit) {
            switch event {
            case .notification(ReadResource.notification, let params, let attachments):
                guard let bytes = attachments.first, params["offset"]?.intValue == offset else {
                    throw ErrorCode.interrupted.error("the catalog sent bytes at an unexpected offset; retry")
                }
                offset += Int64(bytes.count)
                try await chunk(bytes)
            case .notification: break
            case .answer(let answer):
                // A short resource may be attached to the response.
                if let bytes = answer.attachments.first { try await chunk(bytes) }
            }
        }
    }
}
