public import Basics
public import Contracts
public import JSONValue
import PhotoModel

extension PhotoLibrary {
    /// Returns an image with its bytes, joined from all messages. With several thumbnailers, it is requested from
    /// another one if the connection is lost.
    ///
    /// Without `degraded`, an opportunistic request is sent with `synchronous`: the thumbnailer then renders only
    /// the final image.
    ///
    /// - Parameters:
    ///   - deadline: time until the last byte; nil for none, for an original that may have to be downloaded
    ///   - degraded: called with each degraded image before the final one; nil for the final one only
    ///   - progress: called with the fraction of the original that was downloaded, 0...1
    /// - Throws: the thumbnailer's error, or `interrupted` if bytes are missing
    public func image(
        _ request: ImageRequest,
        deadline: Duration? = .seconds(120),
        degraded: ((_ result: ImageRequest.Result, _ bytes: Bytes) -> Void)? = nil,
        progress: ((Double) -> Void)? = nil
    ) async throws(RPCError) -> (result: ImageRequest.Result, bytes: Bytes) {
        var request = request
        if degraded == nil, request.deliveryMode == .opportunistic { request.isSynchronous = true }
        let instances = thumbnailer.addresses.count
        let clock = ContinuousClock()
        let end = deadline.map { clock.now + $0 }
        var attemptsLeft = instances
        while true {
            do throws(RPCError) {
                return try await imageOnce(request, end.map { $0 - clock.now }, degraded, progress)
            } catch {
                if !error.isUnsent { attemptsLeft -= 1 }
                let canRetry = instances > 1 && attemptsLeft > 0 && end.map { clock.now < $0 } ?? true
                guard error.isOfLostInstance, canRetry else { throw error }
            }
        }
    }

    private func imageOnce(
        _ request: ImageRequest,
        _ deadline: Duration?,
        _ degraded: ((_ result: ImageRequest.Result, _ bytes: Bytes) -> Void)?,
        _ progress: ((Double) -> Void)?
    ) async throws(RPCError) -> (result: ImageRequest.Result, bytes: Bytes) {
        var bytes: Bytes = []
        for try await event in thumbnailer.stream(request, credit: Self.imageCredit, deadline: deadline) {
            switch event {
            case .notification(ImageDelivery.degraded, let params, let attachments):
                guard let result = try? ImageRequest.Result(json: params) else { continue }
                degraded?(result, attachments.flatMap { $0 })
            case .notification(ImageDelivery.chunk, let params, let attachments):
                guard params["offset"]?.intValue == Int64(bytes.count) else { throw Self.incomplete }
                for part in attachments { bytes += part }
            case .notification(DownloadResource.notification, let params, _):
                if let fraction = params["progress"]?.doubleValue { progress?(fraction) }
            case .notification: continue
            case .response(let response):
                for part in response.attachments { bytes += part }
                guard Int64(bytes.count) == response.result.size else { throw Self.incomplete }
                return (response.result, bytes)
            }
        }
        throw Self.incomplete
    }

    private static var imageCredit: Int { 8 << 20 }

    private static var incomplete: RPCError {
        ErrorCode.interrupted.error("the image is incomplete; request it again")
    }
}
