public import Basics
public import Contracts
public import JSONValue
public import Logging
public import Messaging
public import PhotoModel

/// The result of a request, with its attachments.
public struct ServiceResponse<Result: Sendable>: Sendable {
    public var result: Result
    /// The binary frames of the response, in order.
    public var attachments: [Bytes]

    public init(result: Result, attachments: [Bytes] = []) {
        self.result = result
        self.attachments = attachments
    }
}

/// A client of one service that sends typed requests.
///
/// It connects and reconnects automatically; a request waits for the connection until its deadline. A service may have
/// several instances: then a ``RoutedRequest`` goes to the one that clients prefer for its asset (rendezvous hashing),
/// and to the next one while that is not connected. Of several catalogs one writes: changes go to that one, and a
/// ``CatalogRead`` to any that answers.
public final class ServiceClient: Sendable {
    private let requestClients: Instances<RequestClient>
    /// The catalogs of the library; nil for a single catalog, and for another service.
    private let catalogs: Catalogs?

    /// The rule by which the connection for a request is chosen.
    private enum Routing {
        /// The service has one instance.
        case single(RequestClient)
        /// Several catalogs, of which one writes: chosen by the kind of the request.
        case catalogs(Catalogs)
        /// Several thumbnailers or editors: chosen by the asset of the request.
        case instances(Instances<RequestClient>)
    }

    private var routing: Routing {
        if let catalogs { return .catalogs(catalogs) }
        return requestClients.count > 1 ? .instances(requestClients) : .single(requestClients.first)
    }

    /// The address of the service; of several instances, that of the first.
    public var address: EndpointAddress { requestClients.first.address }

    /// The addresses of the instances.
    public var addresses: [EndpointAddress] { requestClients.addresses }

    /// One client for each instance of the service, in the order of the addresses.
    public var instances: [ServiceClient] {
        requestClients.count > 1 ? requestClients.connections.map { ServiceClient($0) } : [self]
    }

    /// True while there is a connection to the service, or to one of its instances.
    public var isConnected: Bool { requestClients.connections.contains { $0.connection.isUsable } }

    /// Begins to connect. A service that is not running yet is not an error.
    ///
    /// - Throws: local errors only: no more sockets are available, or the address is invalid
    public convenience init(
        address: EndpointAddress,
        thread: PollThread,
        limits: MessagingLimits = MessagingLimits(),
        security: SocketSecurity = .none,
        logger: Logger
    ) throws(MessagingError) {
        self.init(
            try RequestClient(address: address, thread: thread, limits: limits, security: security, logger: logger)
        )
    }

    /// Begins to connect to the catalogs of a library, of which one writes.
    ///
    /// - Parameters:
    ///   - catalogs: the addresses of the catalogs, at least one
    ///   - security: the security of connections over TCP
    /// - Throws: as ``init(address:thread:limits:security:logger:)``
    public convenience init(
        catalogs: [EndpointAddress],
        thread: PollThread,
        limits: MessagingLimits = MessagingLimits(),
        security: SocketSecurity = .none,
        logger: Logger
    ) throws(MessagingError) {
        func connect(_ addresses: [EndpointAddress]) throws(MessagingError) -> [RequestClient] {
            try RequestClient.connections(to: addresses, thread: thread, limits: limits, logger: logger) { address in
                address.transport == .tcp ? security : .none
            }
        }
        let connections = try connect(catalogs)
        self.init(connections, healthConnections: try connect(catalogs.count > 1 ? catalogs : []))
    }

    private convenience init(_ connection: RequestClient) { self.init([connection]) }

    /// - Parameter healthConnections: a second connection to each of several catalogs; empty otherwise
    init(_ connections: [RequestClient], healthConnections: [RequestClient] = []) {
        requestClients = Instances(connections: connections)
        catalogs = healthConnections.isEmpty ? nil : Catalogs(connections, healthConnections: healthConnections)
    }

    /// Returns a client of the instance that gets requests about an asset, for requests that belong together.
    ///
    /// - Parameter limit: the maximum time to wait for a connection to any instance
    public func instance(for asset: ObjectID?, within limit: Duration = .seconds(30)) async -> ServiceClient {
        guard requestClients.count > 1 else { return self }
        return ServiceClient(await requestClients.choose(for: asset, within: limit).connection)
    }

    /// Returns assets grouped by the instance that gets requests about them.
    public func divide(_ assets: [ObjectID]) async -> [(instance: ServiceClient, assets: [ObjectID])] {
        guard requestClients.count > 1 else { return [(self, assets)] }
        var parts: [EndpointAddress: (instance: ServiceClient, assets: [ObjectID])] = [:]
        for asset in assets {
            let instance = await instance(for: asset)
            parts[instance.address, default: (instance, [])].assets.append(asset)
        }
        return addresses.compactMap { parts[$0] }
    }

    /// Sends a request once, without retrying. With several instances, a request that changes nothing is sent to
    /// another one if its connection is lost.
    ///
    /// - Throws: the service's error; `deadline_exceeded`; `connection_lost` if the connection is lost before the
    ///   response, in which case a write may have been committed; `user_cancelled` if the task is cancelled
    public func ask<R: Request>(
        _ request: R,
        attachments: [Bytes] = [],
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        if case .instances(let instances) = routing {
            return try await askInstance(of: instances, request, attachments, deadline)
        }
        return try await askCatalog(R.self, deadline) { connection, time, waits throws(RPCError) in
            try await self.send(request, attachments, time, over: connection, waitsForConnection: waits)
        }
    }

    /// Sends a request over one connection.
    private func send<R: Request>(
        _ request: R,
        _ attachments: [Bytes],
        _ deadline: Duration,
        over connection: RequestClient,
        waitsForConnection: Bool
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        let reply = try await connection.call(
            R.method,
            request.json,
            attachments: attachments,
            deadline: max(deadline, .milliseconds(1)),
            waitsForConnection: waitsForConnection
        )
        return ServiceResponse(result: try R.result(of: reply.result), attachments: reply.attachments)
    }

    /// Sends a request to one of several instances: the preferred one for its asset, if that can be reached.
    private func askInstance<R: Request>(
        of instances: Instances<RequestClient>,
        _ request: R,
        _ attachments: [Bytes],
        _ deadline: Duration
    ) async throws(RPCError) -> ServiceResponse<R.Result> {
        let routed = request as? any RoutedRequest
        let clock = ContinuousClock()
        let end = clock.now + deadline
        var attemptsLeft = (routed.map { type(of: $0).isRepeatable } ?? false) ? instances.count : 1
        while true {
            let choice = await instances.choose(for: routed?.routingAsset, within: end - clock.now)
            do throws(RPCError) {
                let connection = choice.connection
                return try await send(
                    request,
                    attachments,
                    end - clock.now,
                    over: connection,
                    waitsForConnection: !choice.isConnected
                )
            } catch {
                if !error.isUnsent { attemptsLeft -= 1 }
                guard error.isOfLostInstance, attemptsLeft > 0, clock.now < end else { throw error }
            }
        }
    }

    /// Makes an attempt over the only connection, or over the connection to one of several catalogs that may answer the
    /// request.
    private func askCatalog<R: Request, Value: Sendable>(
        _ request: R.Type,
        _ deadline: Duration,
        _ attempt: @escaping Catalogs.Attempt<Value>
    ) async throws(RPCError) -> Value {
        guard let catalogs else { return try await attempt(requestClients.first, deadline, true) }
        return try await catalogs.send(request, deadline, attempt)
    }

    /// Requests a page of the identifiers of assets, without their other members.
    ///
    /// - Throws: as ``ask(_:attachments:deadline:)``
    public func identifiers(
        _ request: FetchAssets,
        deadline: Duration
    ) async throws(RPCError) -> (ids: [ObjectID], token: ChangeToken, count: Int) {
        let reply = try await askCatalog(FetchAssets.self, deadline) { connection, time, waits throws(RPCError) in
            try await connection.call(
                FetchAssets.method,
                request.json,
                deadline: max(time, .milliseconds(1)),
                waitsForConnection: waits
            ).result
        }
        let ids = (reply["assets"]?.arrayValue ?? []).compactMap { $0["id"]?.stringValue.flatMap { ObjectID($0) } }
        guard let token = reply["token"]?.stringValue.flatMap({ ChangeToken($0) }), let count = reply["count"]?.intValue
        else { throw ErrorCode.internalError.error("the result of \(FetchAssets.method) has no token or no count") }
        return (ids, token, Int(count))
    }

    /// Requests a page of the change log whose records stay encoded, for callers that forward them.
    ///
    /// - Throws: as ``ask(_:attachments:deadline:)``
    public func encodedChangePage(
        _ request: ChangesSince,
        deadline: Duration = .seconds(30)
    ) async throws(RPCError) -> EncodedChangePage {
        let reply = try await askCatalog(ChangesSince.self, deadline) { connection, time, waits throws(RPCError) in
            try await connection.encodedCall(
                ChangesSince.method,
                request.json,
                deadline: max(time, .milliseconds(1)),
                waitsForConnection: waits
            )
        }
        do throws(JSONProblem) {
            return try EncodedChangePage(parsing: reply.frame, at: reply.range)
        } catch {
            throw ErrorCode.internalError.error("the result of \(ChangesSince.method) cannot be decoded: \(error)")
        }
    }

    /// Returns a request that yields notifications before its response.
    ///
    /// - Parameters:
    ///   - credit: bytes of unread notifications that the service may send ahead; replenished as they are read
    ///   - deadline: nil to wait until the response or until the connection is lost
    ///   - waitsForConnection: false if the stream fails with `connection_lost` while there is no connection
    public func stream<R: Request>(
        _ request: R,
        credit: Int,
        deadline: Duration? = nil,
        waitsForConnection: Bool = true
    ) -> ServiceStream<R> {
        // The time for the choice between several instances.
        let limit = waitsForConnection ? deadline : Instances<RequestClient>.restartTime
        @Sendable func open(_ connection: RequestClient, _ mayWait: Bool) -> RequestStream {
            connection.stream(
                R.method,
                request.json,
                deadline: deadline,
                credit: credit,
                waitsForConnection: mayWait && waitsForConnection
            )
        }
        // A choice takes time, so it is made when the first element is requested.
        switch routing {
        case .single(let connection): return ServiceStream(open(connection, true))
        case .catalogs(let catalogs):
            return ServiceStream(choosing: { number in await catalogs.stream(R.self, number, limit, open) })
        case .instances(let instances):
            guard let routed = request as? any RoutedRequest else { return ServiceStream(open(instances.first, true)) }
            return ServiceStream(choosing: { number in
                guard number == 0 else { return nil }
                let choice = await instances.choose(for: routed.routingAsset, within: limit)
                return open(choice.connection, !choice.isConnected)
            })
        }
    }

    /// Returns the same stream with undecoded notifications, for callers that forward them.
    public func encodedStream<R: Request>(_ request: R, credit: Int) -> EncodedStream {
        requestClients.first.encodedStream(R.method, request.json, credit: credit)
    }

    /// Of several catalogs, the one that currently answers reads, for a stream that the caller restarts at another one
    /// if it ends; nil for a single catalog.
    public var currentCatalog: ServiceClient? { catalogs.map { ServiceClient($0.currentReader) } }

    /// Runs work as long as the service answers `health` requests.
    ///
    /// - Throws: the error of the work; `connection_lost` if the service does not answer within two seconds;
    ///   `user_cancelled` if the task is cancelled
    public func whileAnswering<Value: Sendable>(
        _ work: @escaping @Sendable () async throws(RPCError) -> Value
    ) async throws(RPCError) -> Value {
        try await requestClients.first.whileAnswering(work)
    }

    /// Returns the health of the service.
    public func health(deadline: Duration = .seconds(5)) async throws(RPCError) -> Health.Result {
        try await ask(Health(), deadline: deadline).result
    }

    /// Returns the service's counters and gauges.
    public func metrics(deadline: Duration = .seconds(5)) async throws(RPCError) -> JSONObject {
        try await ask(MetricsRequest(), deadline: deadline).result.members
    }

    /// Returns counters of this connection by name.
    public func connectionMetrics() async -> JSONObject { await requestClients.first.metrics() }

    /// Closes the connections. Pending requests end with `connection_lost`.
    public func close() async {
        for connection in requestClients.connections { await connection.close() }
        await catalogs?.close()
    }
}

// MARK: - Resources

extension ServiceClient {
    /// Makes the catalog download the bytes of a resource if they are not on its machine, and reports the progress.
    /// Cancelling the task ends the download, unless others wait for it.
    ///
    /// - Parameter progress: receives the fraction that has arrived, 0...1; not called if nothing is downloaded
    /// - Throws: `network_access_required` for bytes in remote storage that may not be downloaded; `network_error` if
    ///   the download fails; `missing_resource` for bytes that are neither local nor remote
    public func download(
        _ request: DownloadResource,
        progress: (Double) async throws(RPCError) -> Void
    ) async throws(RPCError) {
        for try await event in stream(request, credit: 1 << 16) {
            if case .notification(DownloadResource.notification, let params, _) = event,
                let fraction = params["progress"]?.doubleValue
            {
                try await progress(fraction)
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
            case .response(let response):
                // A short resource may be attached to the response.
                if let bytes = response.attachments.first { try await chunk(bytes) }
            }
        }
    }

    /// Reports to the catalog that a worker crashed or hung while reading stored bytes.
    ///
    /// A failure to report is only logged: the bytes will be tried again, and the next failure will be reported.
    public func report(_ fault: ReportWorkerFault, logger: Logger) async {
        var metadata: Logger.Metadata = ["digest": "\(fault.digest)", "reason": "\(fault.reason)"]
        do {
            let result = try await ask(fault, deadline: .seconds(5)).result
            metadata["failures"] = "\(result.failures)"
            logger.warning(
                result.isQuarantined ? "bytes quarantined after worker failures" : "worker failed while reading bytes",
                metadata: metadata
            )
        } catch {
            metadata["error"] = "\(error)"
            logger.warning("worker failure could not be reported to the catalog", metadata: metadata)
        }
    }
}

// MARK: - Results and connections

extension Request {
    /// Decodes a result of this request.
    static func result(of json: JSON) throws(RPCError) -> Result {
        do throws(JSONProblem) {
            return try Result(json: json)
        } catch {
            throw ErrorCode.internalError.error("the result of \(method) cannot be decoded: \(error)")
        }
    }
}

extension RequestClient {
    /// Begins to connect to each of some addresses.
    ///
    /// - Parameter security: returns the security of a connection to an address
    static func connections(
        to addresses: [EndpointAddress],
        thread: PollThread,
        limits: MessagingLimits,
        logger: Logger,
        security: (EndpointAddress) -> SocketSecurity
    ) throws(MessagingError) -> [RequestClient] {
        var connections: [RequestClient] = []
        for address in addresses {
            connections.append(
                try RequestClient(
                    address: address,
                    thread: thread,
                    limits: limits,
                    security: security(address),
                    logger: logger
                )
            )
        }
        return connections
    }
}
