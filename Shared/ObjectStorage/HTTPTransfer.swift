import CCurl
import Glibc
import Synchronization

/// One HTTP request and its response, with libcurl. It blocks the thread that runs it.
final class HTTPTransfer {
    /// The bytes that a request sends.
    enum Body {
        case bytes([UInt8])
        /// A part of an open file.
        case file(Int32, Range<Int64>)

        var count: Int64 {
            switch self {
            case .bytes(let bytes): Int64(bytes.count)
            case .file(_, let range): Int64(range.count)
            }
        }
    }

    struct Response {
        var status = 0
        /// The values by the name in lower case.
        var headers: [String: String] = [:]
        /// The body, unless the sink received it; at most ``HTTPTransfer/maxBodyBytes``.
        var body: [UInt8] = []
    }

    /// The maximum size of a body that is stored, of an error or a list; the rest is discarded.
    static let maxBodyBytes = 1 << 20

    var method = "GET"
    var url = ""
    var headers: [(String, String)] = []
    var body: Body?
    var settings = ObjectStoreSettings()
    /// Receives the headers before the first piece of a body that goes to the sink; an error ends the transfer.
    var accept: (([String: String]) throws -> Void)?
    /// Receives the body of a response with a status of 200 to 299.
    var sink: ((UnsafeRawBufferPointer) throws -> Void)?
    /// Receives the sent bytes of the body in order, each byte once, even if libcurl sends it again.
    var observe: ((UnsafeRawBufferPointer) -> Void)?
    /// Receives the number of bytes of the body that were sent.
    var sent: ((Int64) -> Void)?
    /// Returns true to end the transfer.
    var isCancelled: () -> Bool = { false }

    private var response = Response()
    private var position: Int64 = 0
    private var observed: Int64 = 0
    private var isAccepted = false
    private var failure: (any Error)?

    /// Sends the request on a connection of the handle and waits for the response.
    ///
    /// - Throws: ``ObjectStoreError`` if there is no complete response; errors of the sink
    func run(on handle: CurlHandle) throws -> Response {
        let curl = handle.curl
        curl_easy_reset(curl)
        var list: UnsafeMutablePointer<curl_slist>?
        defer { curl_slist_free_all(list) }
        for (name, value) in headers { list = curl_slist_append(list, "\(name): \(value)") }
        // Removes headers of libcurl: with Expect it waits a second before it sends a body, and it declares the body as
        // a form.
        for name in ["Expect", "Content-Type", "Accept"] { list = curl_slist_append(list, "\(name):") }
        safelight_curl_set_text(curl, CURLOPT_URL, url)
        safelight_curl_set_list(curl, CURLOPT_HTTPHEADER, list)
        safelight_curl_set_text(curl, CURLOPT_PROTOCOLS_STR, "http,https")
        safelight_curl_set_text(curl, CURLOPT_USERAGENT, "safelight")
        safelight_curl_set_long(curl, CURLOPT_NOSIGNAL, 1)
        safelight_curl_set_long(curl, CURLOPT_NOPROGRESS, 0)
        safelight_curl_set_long(curl, CURLOPT_CONNECTTIMEOUT, settings.connectSeconds)
        safelight_curl_set_long(curl, CURLOPT_LOW_SPEED_LIMIT, 1)
        safelight_curl_set_long(curl, CURLOPT_LOW_SPEED_TIME, settings.stallSeconds)
        safelight_curl_set_long(curl, CURLOPT_BUFFERSIZE, 256 << 10)
        safelight_curl_set_long(curl, CURLOPT_UPLOAD_BUFFERSIZE, 256 << 10)
        if let certificates = settings.certificateFile {
            safelight_curl_set_text(curl, CURLOPT_CAINFO, certificates)
        }
        if method == "HEAD" { safelight_curl_set_long(curl, CURLOPT_NOBODY, 1) }
        let context = Unmanaged.passUnretained(self).toOpaque()
        if let body {
            safelight_curl_set_long(curl, CURLOPT_UPLOAD, 1)
            safelight_curl_set_offset(curl, CURLOPT_INFILESIZE_LARGE, curl_off_t(body.count))
            safelight_curl_set_data(curl, CURLOPT_READFUNCTION, Self.read)
            safelight_curl_set_pointer(curl, CURLOPT_READDATA, context)
            safelight_curl_set_seek(curl, Self.seek)
            safelight_curl_set_pointer(curl, CURLOPT_SEEKDATA, context)
            if settings.bytesPerSecond > 0 {
                safelight_curl_set_offset(curl, CURLOPT_MAX_SEND_SPEED_LARGE, curl_off_t(settings.bytesPerSecond))
            }
        }
        if method != "HEAD" { safelight_curl_set_text(curl, CURLOPT_CUSTOMREQUEST, method) }
        safelight_curl_set_data(curl, CURLOPT_WRITEFUNCTION, Self.write)
        safelight_curl_set_pointer(curl, CURLOPT_WRITEDATA, context)
        safelight_curl_set_data(curl, CURLOPT_HEADERFUNCTION, Self.header)
        safelight_curl_set_pointer(curl, CURLOPT_HEADERDATA, context)
        safelight_curl_set_progress(curl, Self.progress)
        safelight_curl_set_pointer(curl, CURLOPT_XFERINFODATA, context)
        let code = curl_easy_perform(curl)
        var status = 0
        safelight_curl_status(curl, &status)
        response.status = status
        if let failure { throw failure }
        guard code == CURLE_OK else { throw error(of: code) }
        return response
    }

    private func error(of code: CURLcode) -> ObjectStoreError {
        let reason = String(cString: curl_easy_strerror(code))
        return switch code {
        case CURLE_ABORTED_BY_CALLBACK: ObjectStoreError(.cancelled, "the transfer was cancelled")
        case CURLE_PEER_FAILED_VERIFICATION, CURLE_SSL_CACERT_BADFILE, CURLE_SSL_ISSUER_ERROR:
            ObjectStoreError(
                .untrustedCertificate,
                "the certificate of the object store is not trusted (\(reason)); name its authority with "
                    + "--object-store-ca"
            )
        case CURLE_PARTIAL_FILE: ObjectStoreError(.truncated, "the connection ended before all bytes had arrived")
        case CURLE_URL_MALFORMAT, CURLE_UNSUPPORTED_PROTOCOL: .invalid("the endpoint is not valid: \(reason)")
        default: ObjectStoreError(.unreachable, "the object store cannot be reached: \(reason)")
        }
    }

    // MARK: Callbacks of libcurl

    private static func transfer(_ context: UnsafeMutableRawPointer) -> HTTPTransfer {
        Unmanaged<HTTPTransfer>.fromOpaque(context).takeUnretainedValue()
    }

    private static let write: safelight_curl_data = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        return transfer(context).receive(UnsafeRawBufferPointer(start: bytes, count: size * count))
    }

    private static let read: safelight_curl_data = { bytes, size, count, context in
        guard let bytes, let context else { return Int(CURL_READFUNC_ABORT) }
        return transfer(context).supply(UnsafeMutableRawBufferPointer(start: bytes, count: size * count))
    }

    private static let header: safelight_curl_data = { bytes, size, count, context in
        guard let bytes, let context else { return 0 }
        let text = String(decoding: UnsafeRawBufferPointer(start: bytes, count: size * count), as: UTF8.self)
        transfer(context).receiveHeader(text)
        return size * count
    }

    private static let seek: safelight_curl_seek = { context, offset, origin in
        guard let context, origin == SEEK_SET else { return CURL_SEEKFUNC_CANTSEEK }
        transfer(context).position = Int64(offset)
        return CURL_SEEKFUNC_OK
    }

    private static let progress: safelight_curl_progress = { context, _, _, _, uploaded in
        guard let context else { return 1 }
        let transfer = transfer(context)
        if uploaded > 0 { transfer.sent?(Int64(uploaded)) }
        return transfer.isCancelled() ? 1 : 0
    }

    private func receiveHeader(_ line: String) {
        if line.hasPrefix("HTTP/") {
            // The final response after an interim one.
            response = Response()
            response.status = line.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
        } else if let colon = line.firstIndex(of: ":"), response.headers.count < 200 {
            response.headers[line[..<colon].lowercased()] = line[line.index(after: colon)...].trimmed
        }
    }

    private func receive(_ bytes: UnsafeRawBufferPointer) -> Int {
        guard let sink, (200..<300).contains(response.status) else {
            response.body += bytes.prefix(max(0, Self.maxBodyBytes - response.body.count))
            return bytes.count
        }
        do {
            if !isAccepted { try accept?(response.headers) }
            isAccepted = true
            try sink(bytes)
            return bytes.count
        } catch {
            failure = error
            return 0
        }
    }

    private func supply(_ buffer: UnsafeMutableRawBufferPointer) -> Int {
        guard let body, position < body.count else { return 0 }
        let length = Int(min(Int64(buffer.count), body.count - position))
        var count = length
        switch body {
        case .bytes(let bytes):
            buffer.copyBytes(from: bytes[Int(position)..<Int(position) + length])
        case .file(let descriptor, let range):
            count = pread(descriptor, buffer.baseAddress, length, off_t(range.lowerBound + position))
            guard count > 0 else {
                failure = ObjectStoreError(
                    .fileDamaged,
                    count == 0 ? "the file became shorter" : "the file cannot be read"
                )
                return Int(CURL_READFUNC_ABORT)
            }
        }
        // Bytes that are sent again after a lost connection have already been observed.
        let repeated = Int(max(0, min(Int64(count), observed - position)))
        if repeated < count {
            observe?(UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(buffer)[repeated..<count]))
        }
        position += Int64(count)
        observed = max(observed, position)
        return count
    }
}

/// An easy handle of libcurl with its connections.
///
/// `@unchecked Sendable`: ``CurlHandlePool`` gives it to one thread at a time.
final class CurlHandle: @unchecked Sendable {
    let curl: UnsafeMutableRawPointer

    init?() {
        guard let curl = curl_easy_init() else { return nil }
        self.curl = curl
    }

    deinit { curl_easy_cleanup(curl) }
}

/// A pool of libcurl handles, whose connections are reused.
final class CurlHandlePool: Sendable {
    private let idle = Mutex<[CurlHandle]>([])
    private static let maxIdle = 8
    private static let isInitialized: Bool = curl_global_init(Int(CURL_GLOBAL_DEFAULT)) == CURLE_OK

    func withHandle<Value>(_ body: (CurlHandle) throws -> Value) throws -> Value {
        guard Self.isInitialized, let handle = idle.withLock({ $0.popLast() }) ?? CurlHandle() else {
            throw ObjectStoreError(.unreachable, "there is no memory for a transfer")
        }
        defer {
            idle.withLock { if $0.count < Self.maxIdle { $0.append(handle) } }
        }
        return try body(handle)
    }
}
