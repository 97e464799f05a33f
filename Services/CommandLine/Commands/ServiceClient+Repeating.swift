import Basics
import Contracts
import JSONValue
import PhotoClient

extension ServiceClient {
    /// The time that a service is given to start again.
    static let restartTime = Duration.seconds(30)

    private static let firstDelay = Duration.milliseconds(50)
    private static let maxDelay = Duration.seconds(2)

    /// Waits until the service answers a `health` request.
    ///
    /// - Throws: the error of a service that does not respond in time (``RPCError/meansNoResponse``), or its own error
    func waitForAnswer(within limit: Duration) async throws(RPCError) {
        let clock = ContinuousClock()
        let end = clock.now + limit
        while true {
            do throws(RPCError) {
                _ = try await health(deadline: max(end - clock.now, .milliseconds(1)))
                return
            } catch {
                // The service ended during the request; the next request waits until it is reachable again.
                guard error.errorCode == .connectionLost, clock.now < end else { throw error }
            }
        }
    }

    /// Sends a change, again after each transient error. It is performed once, because it has a transaction id.
    ///
    /// - Parameters:
    ///   - deadline: of all attempts together; nil for none
    ///   - restartTime: the time without success after which the error is thrown
    ///   - attempt: sends the request, each time with the same transaction id, within the time that is left
    /// - Throws: an error that is not transient; or the last one, after which it is unknown whether the change was made
    func repeating<Value>(
        within deadline: Duration?,
        restartTime: Duration = ServiceClient.restartTime,
        _ attempt: (_ remaining: Duration?) async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        let clock = ContinuousClock()
        let end = deadline.map { clock.now + $0 }
        var delay = Self.firstDelay
        var failure: (error: RPCError, first: ContinuousClock.Instant)?
        while true {
            if !isConnected, let error = await errorIfUnresponsive(within: restartTime) {
                throw failure?.error ?? error
            }
            let start = clock.now
            do throws(RPCError) {
                return try await attempt(end.map { $0 - clock.now })
            } catch {
                guard error.isTransient else { throw error }
                // The service has worked on this attempt for a long time: the earlier failures no longer count.
                if clock.now - start > restartTime { (failure, delay) = (nil, Self.firstDelay) }
                let first = failure?.first ?? clock.now
                failure = (error, first)
                let next = clock.now + delay
                guard next - first < restartTime, end.map({ next < $0 }) ?? true else { throw error }
            }
            await TaskDelay.retryDelay(delay)
            delay = min(delay * 2, Self.maxDelay)
        }
    }

    /// Waits until the service answers. Returns the error if it does not respond in time; nil otherwise.
    func errorIfUnresponsive(within limit: Duration) async -> RPCError? {
        do throws(RPCError) {
            try await waitForAnswer(within: limit)
            return nil
        } catch {
            return error.meansNoResponse ? error : nil
        }
    }

    /// Sends a change of one asset, again after a transient error, as ``repeating(within:restartTime:_:)`` does.
    ///
    /// - Parameter request: has a transaction id
    func change<R: Request>(
        _ request: R,
        deadline: Duration,
        _ downloads: DownloadOptions,
        _ output: Output
    ) async throws(RPCError) -> R.Result {
        try await repeating(within: downloads.deadline(deadline)) { remaining throws(RPCError) in
            try await ask(request, deadline: remaining ?? deadline, downloads, output).result
        }
    }
}
