import Basics
import Contracts
import JSONValue
import PhotoClient
import PhotoModel
import Synchronization

extension LibraryConnection {
    /// Sends a request for an image to the thumbnailer, and joins the bytes of all messages. A request that was lost
    /// with its connection is sent again.
    ///
    /// - Parameters:
    ///   - size: returns the number of bytes that a result announces
    ///   - access: the permission to download the original, which can take any time
    ///   - degraded: called with each degraded image before the final one
    func join<R: Request, Degraded: JSONTabled>(
        _ request: R,
        _ access: NetworkAccess,
        size: (R.Result) -> Int64,
        degraded: ((Degraded, Bytes) -> Void)
    ) async throws(RPCError) -> (result: R.Result, bytes: Bytes) {
        let clock = ContinuousClock()
        let end = clock.now + (access.isAllowed ? Self.downloadDeadline : max(configuration.deadline, .seconds(60)))
        while true {
            if access.isAllowed { try await waitForConnection(client.thumbnailer) }
            do throws(RPCError) {
                return try await joinOnce(request, access, until: end, size, degraded)
            } catch {
                guard error.isTransient, !isClosed.load(ordering: .relaxed), !Task.isCancelled, !access.isStopped,
                    clock.now < end
                else {
                    await access.report(error)
                    throw error
                }
                await executor.waitBeforeRetry(milliseconds: error.errorCode == .connectionLost ? 10 : 100)
            }
        }
    }

    /// Sends a request without degraded images, as ``join(_:_:size:degraded:)`` does.
    func join<R: Request>(
        _ request: R,
        _ access: NetworkAccess,
        size: (R.Result) -> Int64
    ) async throws(RPCError) -> (result: R.Result, bytes: Bytes) {
        try await join(request, access, size: size) { (_: FreeForm, _) in }
    }

    private func joinOnce<R: Request, Degraded: JSONTabled>(
        _ request: R,
        _ access: NetworkAccess,
        until end: ContinuousClock.Instant,
        _ size: (R.Result) -> Int64,
        _ degraded: (Degraded, Bytes) -> Void
    ) async throws(RPCError) -> (result: R.Result, bytes: Bytes) {
        var bytes: Bytes = []
        let incomplete = ErrorCode.interrupted.error("the image is incomplete")
        let remaining = access.isAllowed ? nil : max(end - ContinuousClock().now, .milliseconds(1))
        let stream = client.thumbnailer.stream(
            request,
            credit: 8 << 20,
            deadline: remaining,
            waitsForConnection: !access.isAllowed
        )
        for try await event in stream {
            switch event {
            case .notification(ImageDelivery.degraded, let params, let attachments):
                // A degraded image that cannot be decoded is skipped: another message follows.
                guard let result = try? Degraded(json: params) else { continue }
                degraded(result, attachments.flatMap { $0 })
            case .notification(ImageDelivery.chunk, let params, let attachments):
                guard params["offset"]?.intValue == Int64(bytes.count) else { throw incomplete }
                for part in attachments { bytes += part }
            case .notification(let method, let params, _): _ = try await access.report(method, params)
            case .response(let response):
                for part in response.attachments { bytes += part }
                guard Int64(bytes.count) == size(response.result) else { throw incomplete }
                return (response.result, bytes)
            }
        }
        throw incomplete
    }
}

extension LibraryConnection {
    /// Returns a part of a video, joined from all messages. A request that was lost with its connection is sent again.
    func bytes(_ request: ReadVideo, _ access: NetworkAccess) async throws(RPCError) -> Bytes {
        guard access.isAllowed else {
            return try await ask(request, of: client.thumbnailer).attachments.first ?? []
        }
        let clock = ContinuousClock()
        let end = clock.now + Self.downloadDeadline
        while true {
            try await waitForConnection(client.thumbnailer)
            do throws(RPCError) {
                return try await bytesOnce(request, access)
            } catch {
                guard error.isTransient, !isClosed.load(ordering: .relaxed), !Task.isCancelled, !access.isStopped,
                    clock.now < end
                else { throw error }
                await executor.waitBeforeRetry(milliseconds: error.errorCode == .connectionLost ? 10 : 100)
            }
        }
    }

    private func bytesOnce(_ request: ReadVideo, _ access: NetworkAccess) async throws(RPCError) -> Bytes {
        var bytes: Bytes = []
        for try await event in client.thumbnailer.stream(request, credit: 8 << 20, waitsForConnection: false) {
            switch event {
            case .notification(ReadResource.notification, _, let attachments): for part in attachments { bytes += part }
            case .notification(let method, let params, _): _ = try await access.report(method, params)
            case .response(let response):
                for part in response.attachments { bytes += part }
                return bytes
            }
        }
        throw ErrorCode.interrupted.error("the video is incomplete")
    }
}
