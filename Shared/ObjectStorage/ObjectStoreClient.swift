import Basics
import CCurl
import Dispatch
import Glibc
import Synchronization

/// A client of one bucket of a service that speaks the S3 protocol.
///
/// Each request is signed, has time limits, and is repeated after transient failures: at most
/// ``ObjectStoreSettings/attempts`` attempts, with random and growing delays between them. Transfers run on threads of
/// their own. Cancelling the calling task ends the transfer.
public final class ObjectStoreClient: Sendable {
    public let location: ObjectStoreLocation
    private let signer: Mutex<RequestSigner>
    /// The file of the credentials, which is read again when the store refuses them; nil if they are not from a file.
    private let credentialsFile: String?
    let settings: ObjectStoreSettings
    private let pool = CurlHandlePool()
    private let threads = DispatchQueue(label: "object-store", attributes: .concurrent)
    /// Seconds to add to this machine's clock, computed after the store refused a signature because of its time.
    private let clockOffset = Atomic<Int>(0)
    /// False after the store has refused a condition of an upload, which not every service supports.
    let supportsConditions = Atomic<Bool>(true)
    /// False after the store has refused the checksums of parts, which not every service supports.
    let supportsChecksums = Atomic<Bool>(true)
    /// Returns seconds since 1970.
    private let now: @Sendable () -> Int

    /// - Parameter credentialsFile: the file of the credentials, if another program may renew them there
    public init(
        _ location: ObjectStoreLocation,
        _ credentials: ObjectStoreCredentials,
        _ settings: ObjectStoreSettings = ObjectStoreSettings(),
        credentialsFile: String? = nil,
        now: (@Sendable () -> Int)? = nil
    ) {
        self.location = location
        self.signer = Mutex(RequestSigner(credentials, region: location.region))
        self.settings = settings
        self.credentialsFile = credentialsFile
        self.now = now ?? { time(nil) }
    }

    /// The difference between the store's clock and this machine's in seconds, if the store has refused a signature
    /// because of it; else 0.
    public var clockSkewSeconds: Int { clockOffset.load(ordering: .relaxed) }

    /// A request before it is signed.
    struct Request: Sendable {
        var method: String
        var key: String?
        var query: [(String, String)] = []
        var headers: [(String, String)] = []
        var body: UploadBody?
        /// Called with the headers before the first byte for the sink; an error ends the transfer.
        var accept: (@Sendable ([String: String]) throws -> Void)?
        var sink: (@Sendable (UnsafeRawBufferPointer) throws -> Void)?
        var observe: (@Sendable (UnsafeRawBufferPointer) -> Void)?
        var sent: (@Sendable (Int64) -> Void)?
    }

    /// The bytes of a request with their SHA-256 in hexadecimal.
    enum UploadBody: Sendable {
        case bytes([UInt8])
        case file(Int32, Range<Int64>, hash: String)
    }

    /// A response with a status of 200 to 299.
    struct Response: Sendable {
        let headers: [String: String]
        let body: [UInt8]
    }

    // MARK: Attempts

    /// Sends a request, and repeats it after transient failures.
    func send(_ request: Request) async throws -> Response {
        try await withRetries { try await self.attempt(request) }
    }

    /// Runs work, and repeats it after transient failures.
    func withRetries<Value: Sendable>(_ work: @Sendable () async throws -> Value) async throws -> Value {
        var failures = 0
        var isClockSet = false
        var isRenewed = false
        while true {
            let used = credentials
            do {
                return try await work()
            } catch let error as ObjectStoreError {
                if !isRenewed, await renewCredentials(after: error, used) {
                    isRenewed = true
                    continue
                }
                if error.problem == .clockSkew, !isClockSet {
                    // The next attempt uses the new clock offset.
                    isClockSet = true
                    continue
                }
                failures += 1
                guard error.problem.isTransient, failures < settings.attempts, !Task.isCancelled else { throw error }
                await TaskDelay.retryDelay(Self.retryDelay(after: failures))
            }
        }
    }

    /// The current credentials for signatures.
    var credentials: ObjectStoreCredentials { signer.withLock { $0.credentials } }

    /// Reads the file of the credentials again after a refusal that they may have caused.
    ///
    /// - Parameter used: the credentials of the request
    /// - Returns: true if the current credentials are different
    func renewCredentials(after error: ObjectStoreError, _ used: ObjectStoreCredentials) async -> Bool {
        // A response to HEAD does not say that the credentials have expired.
        guard error.problem == .accessDenied || error.problem == .unexpectedReply, let credentialsFile else {
            return false
        }
        if credentials != used { return true }
        // A file that is incomplete, because another program writes it, is read again after the next refusal.
        guard let renewed = try? await onThread({ try ObjectStoreCredentials(file: credentialsFile) }), renewed != used
        else { return false }
        signer.withLock { $0 = RequestSigner(renewed, region: location.region) }
        return true
    }

    /// Returns a random delay that grows with the number of failures: up to 0.2 s, 0.4 s, 0.8 s …, at most 5 s.
    static func retryDelay(after failures: Int) -> Duration {
        let maximum = min(5_000, 100 << min(10, failures))
        return .milliseconds(Int.random(in: maximum / 4...maximum))
    }

    /// Sends a request once.
    func attempt(_ request: Request) async throws -> Response {
        let isCancelled = CancelFlag()
        return try await withTaskCancellationHandler {
            try Task.checkCancellation()
            return try await onThread { [self] in try perform(request, isCancelled) }
        } onCancel: {
            isCancelled.value.store(true, ordering: .relaxed)
        }
    }

    /// Runs work that blocks on a thread of the client.
    func onThread<Value: Sendable>(_ work: @escaping @Sendable () throws -> Value) async throws -> Value {
        try await withCheckedThrowingContinuation { continuation in
            threads.async { continuation.resume(with: Result { try work() }) }
        }
    }

    private final class CancelFlag: Sendable {
        let value = Atomic<Bool>(false)
    }

    private func perform(_ request: Request, _ flag: CancelFlag) throws -> Response {
        let transfer = HTTPTransfer()
        var hash = RequestSigner.emptyHash
        switch request.body {
        case .bytes(let bytes):
            transfer.body = .bytes(bytes)
            hash = SHA256.hash(data: bytes).hexadecimal
        case .file(let descriptor, let range, let known):
            transfer.body = .file(descriptor, range)
            hash = known
        case nil: break
        }
        let path = location.path(of: request.key)
        let signer = signer.withLock { $0 }
        let headers = signer.signed(
            method: request.method,
            path: path,
            query: request.query,
            headers: [("host", location.authority)] + request.headers,
            payloadHash: hash,
            seconds: now() + clockOffset.load(ordering: .relaxed)
        )
        transfer.method = request.method
        let query = RequestSigner.queryText(request.query)
        transfer.url = "\(location.scheme)://\(location.authority)\(path)" + (query.isEmpty ? "" : "?\(query)")
        transfer.headers = headers
        transfer.settings = settings
        transfer.accept = request.accept
        transfer.sink = request.sink
        transfer.observe = request.observe
        transfer.sent = request.sent
        transfer.isCancelled = { flag.value.load(ordering: .relaxed) }
        let response = try pool.withHandle { try transfer.run(on: $0) }
        guard (200..<300).contains(response.status) else { throw error(of: response, request, signer.credentials) }
        return Response(headers: response.headers, body: response.body)
    }

    // MARK: Error responses

    private func error(
        of response: HTTPTransfer.Response,
        _ request: Request,
        _ credentials: ObjectStoreCredentials
    ) -> ObjectStoreError {
        let text = String(decoding: response.body, as: UTF8.self)
        let code = XMLText.element("Code", of: text) ?? ""
        let detail = code.isEmpty ? "status \(response.status)" : "\(code), status \(response.status)"
        switch (response.status, code) {
        // A response to HEAD has no body that names the reason.
        case (_, "RequestTimeTooSkewed"),
            (403, "") where isSkewed(response.headers["date"]):
            setClock(response.headers["date"])
            return ObjectStoreError(
                .clockSkew,
                "the clock of this machine differs from that of the object store by \(clockSkewSeconds) s; set it"
            )
        case (_, "QuotaExceeded"), (_, "XMinioStorageFull"), (_, "StorageFull"), (_, "InsufficientStorage"), (507, _),
            (_, "XMinioAdminBucketQuotaExceeded"):
            return ObjectStoreError(.storeFull, "the object store is full (\(detail)); give it more space")
        case (_, "NoSuchBucket"):
            return ObjectStoreError(.noBucket, "there is no bucket \(location.bucket); create it")
        case (404, _): return ObjectStoreError(.noObject, "the object does not exist (\(detail))")
        case (412, _), (409, "ConditionalRequestConflict"):
            return ObjectStoreError(.objectExists, "the object was created or replaced meanwhile (\(detail))")
        // Amazon refuses expired temporary credentials with status 400.
        case (401, _), (403, _), (_, "ExpiredToken"), (_, "TokenRefreshRequired"), (_, "InvalidToken"):
            return ObjectStoreError(
                .accessDenied,
                "the object store refuses \(credentials.accessKey) (\(detail)); check the credentials and what "
                    + "they allow"
            )
        case (_, "XAmzContentSHA256Mismatch"), (_, "BadDigest"), (_, "XAmzContentChecksumMismatch"):
            return ObjectStoreError(.fileDamaged, "other bytes arrived than were announced (\(detail))")
        case (501, _):
            return ObjectStoreError(
                .unexpectedReply,
                "the object store does not support a part of the request (\(detail))"
            )
        case (413, _), (_, "EntityTooLarge"):
            return ObjectStoreError(
                .unexpectedReply,
                "a part or the whole of the file is too large for the object store, or for a proxy before it "
                    + "(\(detail)); raise its limit"
            )
        case (408, _), (429, _), (500..., _), (_, "SlowDown"), (_, "RequestTimeout"):
            return ObjectStoreError(.storeBusy, "the object store is not ready (\(detail))")
        default:
            return ObjectStoreError(
                .unexpectedReply,
                "the object store has refused \(request.method) (\(detail)); is the endpoint one for S3?"
            )
        }
    }

    /// The maximum difference between the clocks, in seconds, that is not taken for the reason of a refusal. Stores
    /// accept 900.
    private static let maxSkew = 300

    /// Returns true if the header `Date` differs from the clock of the signatures by more than that.
    private func isSkewed(_ date: String?) -> Bool {
        guard let date else { return false }
        let seconds = curl_getdate(date, nil)
        return seconds > 0 && abs(seconds - now() - clockOffset.load(ordering: .relaxed)) > Self.maxSkew
    }

    /// Sets the clock offset to the difference of the header `Date` from this machine's clock.
    private func setClock(_ date: String?) {
        guard let date else { return }
        let seconds = curl_getdate(date, nil)
        if seconds > 0 { clockOffset.store(seconds - now(), ordering: .relaxed) }
    }
}

/// A reader of the elements in XML responses of S3.
enum XMLText {
    /// Returns the text of the first element with a name.
    static func element(_ name: String, of text: String) -> String? {
        guard let start = text.firstRange(ofText: "<\(name)>"),
            let end = String(text[start.upperBound...]).firstRange(ofText: "</\(name)>")
        else { return nil }
        let rest = String(text[start.upperBound...])
        return String(rest[..<end.lowerBound])
            .replacing("&quot;", with: "\"").replacing("&lt;", with: "<").replacing("&gt;", with: ">")
            .replacing("&amp;", with: "&")
    }
}
