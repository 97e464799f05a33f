import Basics
import Contracts
import Dispatch
import Foundation
import JSONValue
import Logging
import Messaging
import PhotoClient
import PhotoModel
import Synchronization

/// The connections of a ``PHPhotoLibrary`` to the services.
///
/// Fetch results and objects reference it, so that they can be read after another library became the shared one.
final class LibraryConnection: Sendable {
    let configuration: PHPhotoLibrary.Configuration
    let client: PhotoLibrary
    let executor = ClientExecutor()
    let interests = InterestRegistry()
    let logger: Logger
    /// The queue of completion handlers and image results.
    var callbacks: DispatchQueue { configuration.callbackQueue }
    let isClosed = Atomic<Bool>(false)
    /// The last identifier of a request to any library, because the image and resource managers serve all libraries.
    private static let lastRequestID = Atomic<Int32>(0)

    init(_ configuration: PHPhotoLibrary.Configuration) throws {
        self.configuration = configuration
        logger = Logger(label: "photokit")
        client = try PhotoLibrary(
            endpoints: configuration.endpoints(),
            client: configuration.client,
            logger: Logger(label: "photokit.client", factory: { _ in SwiftLogNoOpLogHandler() }),
            executor: executor
        )
    }

    /// Returns the next identifier, from 1, for a request that can be cancelled.
    func makeRequestID() -> Int32 { Self.lastRequestID.wrappingAdd(1, ordering: .relaxed).newValue }

    /// Sends a request until it is answered, also across restarts of the service, at most until the deadline.
    ///
    /// - Parameter deadline: nil for that of the configuration
    func ask<R: Request>(
        _ request: R,
        of service: ServiceClient,
        attachments: [Bytes] = [],
        deadline: Duration? = nil
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        let clock = ContinuousClock()
        let end = clock.now + (deadline ?? configuration.deadline)
        var failures = 0
        while true {
            do throws(RPCError) {
                return try await service.ask(request, attachments: attachments, deadline: end - clock.now)
            } catch {
                guard error.isTransient, !isClosed.load(ordering: .relaxed), !Task.isCancelled, clock.now < end else {
                    throw error
                }
                failures += 1
                // After a lost connection the next request waits for the new connection by itself.
                if failures > 3 || error.errorCode != .connectionLost {
                    await executor.waitBeforeRetry(milliseconds: min(50 * failures, 1000))
                }
            }
        }
    }

    /// Sends a request to the catalog, as ``ask(_:of:attachments:deadline:)`` does.
    func askCatalog<R: Request>(_ request: R, deadline: Duration? = nil) async throws(RPCError) -> R.Result {
        try await ask(request, of: client.catalog, deadline: deadline).result
    }

    /// Waits for a connection, also across restarts of the service, at most until the deadline.
    ///
    /// A request that downloads can take any time. It is sent without a deadline, but only when there is a connection.
    ///
    /// - Parameter deadline: nil for that of the configuration
    func waitForConnection(_ service: ServiceClient, deadline: Duration? = nil) async throws(RPCError) {
        guard !service.isConnected else { return }
        _ = try await ask(Health(), of: service, deadline: deadline)
    }

    /// Runs asynchronous work on the client's own thread and blocks the caller until it is done.
    func wait<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(RPCError) -> Value
    ) throws(RPCError) -> Value {
        let outcome = WaitingOutcome<Value>()
        let done = DispatchSemaphore(value: 0)
        _ = Task(executorPreference: executor) {
            do throws(RPCError) {
                outcome.set(.success(try await work()))
            } catch {
                outcome.set(.failure(error))
            }
            done.signal()
        }
        done.wait()
        guard let result = outcome.result else { throw ErrorCode.internalError.error("the request has no result") }
        return try result.get()
    }

    /// Repeats requests until the library answers, even while its folder is offline, is handed to another writer, or is
    /// replaced by another library, and blocks the caller meanwhile.
    ///
    /// - Throws: errors that a repetition cannot resolve, and any error after the library was closed
    func waitForAnswer<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(RPCError) -> Value
    ) throws(RPCError) -> Value {
        try wait { [self] () async throws(RPCError) -> Value in
            while true {
                do throws(RPCError) {
                    return try await work()
                } catch {
                    guard error.isTransient || error.isOfUnavailableLibrary, !isClosed.load(ordering: .relaxed) else {
                        throw error
                    }
                    logger.warning("the library does not answer; asking again", metadata: ["error": "\(error)"])
                    await executor.waitBeforeRetry(milliseconds: 1000)
                }
            }
        }
    }

    /// Calls a handler of the program on the queue of completion handlers, and returns its result.
    ///
    /// The handler must not run on the client's own thread: a synchronous function in it would wait for that thread
    /// forever.
    func call<Value: Sendable>(_ handler: @escaping @Sendable () -> Value) async -> Value {
        await withCheckedContinuation { continuation in
            callbacks.async { continuation.resume(returning: handler()) }
        }
    }

    /// Starts asynchronous work on the client's own thread.
    @discardableResult
    func start(_ work: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: executor) { await work() }
    }
}

extension RPCError {
    /// True if the library currently cannot be read: `PHPhotoLibrary.unavailabilityReason`.
    fileprivate var isOfUnavailableLibrary: Bool {
        switch errorCode {
        case .libraryOffline, .libraryRelinquished, .librarySwitching: true
        default: false
        }
    }
}

/// The result of ``LibraryConnection/wait(_:)``, which passes from the client's thread to the caller's.
private final class WaitingOutcome<Value: Sendable>: Sendable {
    private let outcome = Mutex<Result<Value, RPCError>?>(nil)

    func set(_ result: Result<Value, RPCError>) { outcome.withLock { $0 = result } }

    var result: Result<Value, RPCError>? { outcome.withLock { $0 } }
}
