import Basics
import Contracts
import Dispatch
import Foundation
import JSONValue
import PhotoClient
import Synchronization

/// The permission of a request to download originals from remote storage, and the handler of its progress (S-47, S-48).
///
/// The handler is called on a serial queue of its own, so that neither a caller that a synchronous request blocks nor
/// the handler of another request delays it.
struct NetworkAccess: Sendable {
    let isAllowed: Bool
    /// A progress handler, which returns true to stop the request.
    private typealias Handler = @Sendable (Double, (any Error)?) -> Bool
    private let handler: Handler?
    private let stop = Stop()

    /// A flag that is set when the handler stops the request.
    private final class Stop: Sendable {
        let isSet = Atomic(false)
    }

    /// True if the handler has stopped the request, which is then not repeated.
    var isStopped: Bool { stop.isSet.load(ordering: .relaxed) }

    private let queue = DispatchQueue(label: "photokit.progress")

    /// Creates the access of a request for an image or video. The handler receives the identifier of the request, as
    /// result handlers do.
    init(_ isAllowed: Bool?, _ handler: PHAssetImageProgressHandler?, _ id: Int32) {
        self.isAllowed = isAllowed ?? false
        guard let handler else {
            self.handler = nil
            return
        }
        self.handler = { progress, error in
            var stop = ObjCBool(false)
            handler(progress, error, &stop, [PHImageResultRequestIDKey: id])
            return stop.boolValue
        }
    }

    init(_ options: PHContentEditingInputRequestOptions?) {
        isAllowed = options?.isNetworkAccessAllowed ?? false
        guard let handler = options?.progressHandler else {
            self.handler = nil
            return
        }
        self.handler = { progress, _ in
            var stop = ObjCBool(false)
            handler(progress, &stop)
            return stop.boolValue
        }
    }

    init(_ options: PHAssetResourceRequestOptions?) {
        isAllowed = options?.isNetworkAccessAllowed ?? false
        guard let handler = options?.progressHandler else {
            self.handler = nil
            return
        }
        self.handler = { progress, _ in
            handler(progress)
            return false
        }
    }

    init(isAllowed: Bool) {
        self.isAllowed = isAllowed
        handler = nil
    }

    /// Calls the handler if a notification reports the progress of a download, and waits for it.
    ///
    /// - Returns: true if the notification is about a download
    /// - Throws: `user_cancelled` if the handler stops the request
    func report(_ method: String, _ params: JSON) async throws(RPCError) -> Bool {
        guard method == DownloadResource.notification else { return false }
        guard let progress = params["progress"]?.doubleValue, let handler else { return true }
        guard await !call(handler, progress, nil) else {
            stop.isSet.store(true, ordering: .relaxed)
            throw ErrorCode.userCancelled.error("the progress handler has stopped the request")
        }
        return true
    }

    /// Calls the handler with the error of a download that failed.
    func report(_ error: RPCError) async {
        guard error.errorCode == .networkError, let handler else { return }
        _ = await call(handler, 0, PHPhotosError(error))
    }

    private func call(
        _ handler: @escaping Handler,
        _ progress: Double,
        _ error: (any Error)?
    ) async -> Bool {
        await withCheckedContinuation { continuation in
            queue.async { continuation.resume(returning: handler(progress, error)) }
        }
    }
}

extension LibraryConnection {
    /// The deadline of a request that downloads.
    static let downloadDeadline = Duration.seconds(86_400)

    /// Sends a request and reports the progress of its download; without network access sends it as
    /// ``ask(_:of:attachments:deadline:)`` does.
    func ask<R: Request>(
        _ request: R,
        of service: ServiceClient,
        deadline: Duration? = nil,
        _ access: NetworkAccess
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        guard access.isAllowed else { return try await ask(request, of: service, deadline: deadline) }
        let clock = ContinuousClock()
        let end = clock.now + (deadline ?? configuration.deadline)
        while true {
            try await waitForConnection(service, deadline: end - clock.now)
            do throws(RPCError) {
                return try await askOnce(request, of: service, access)
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

    private func askOnce<R: Request>(
        _ request: R,
        of service: ServiceClient,
        _ access: NetworkAccess
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        for try await event in service.stream(request, credit: 1 << 20, waitsForConnection: false) {
            switch event {
            case .notification(let method, let params, _): _ = try await access.report(method, params)
            case .response(let response): return response
            }
        }
        throw ErrorCode.interrupted.error("the service has not answered")
    }
}
